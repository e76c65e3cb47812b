/* The report's data: cases as columns, failures as objects. */

const data = (() => {
  const element = document.getElementById('data');
  const parsed = JSON.parse(element.textContent);
  element.remove();
  return parsed;
})();
const cases = data.cases, failures = data.failures;
const nCases = cases.name.length;
const GOOD = new Set(['PASS', 'SKIP']);

/* The text of a column with a dictionary. */
function wordOf(column, i) {
  return cases[column].words[cases[column].v[i]];
}

function stateOf(i) {
  return cases.waived[i] ? 'WAIVED' : wordOf('state', i);
}

/* How bad a state is: the order in which states are listed. */
const STATES = ['CRASH', 'HANG', 'OOB', 'RACE', 'DEADLOCK', 'INPUT_MODIFIED', 'FAIL', 'NONDETERMINISTIC', 'VACUOUS',
  'NOT_REJECTED', 'UNTESTED', 'ERROR', 'WAIVED', 'PASS', 'SKIP'];

function stateClass(state) {
  return state === 'PASS' ? 'good' : state === 'SKIP' ? 'skip' : state === 'WAIVED' ? 'waived' : 'bad';
}

function failureOf(i) {
  return failures[cases.failure[i]] || null;
}

function listOf(x) {
  return Array.isArray(x) ? x : [];
}

function failedTensors(failure) {
  return listOf(failure && failure.tensors).filter(t => t && t.failed);
}

/* Names of the failed tensors of each case: computed once, for filters and sorting ask for it of every case. */
const tensorNames = cases.failure.map(k =>
  k < 0 || !failures[k] ? '' : [...new Set(failedTensors(failures[k]).map(t => t.name))].join(', '));

/* The case of each failure. */
const caseOfFailure = new Int32Array(failures.length).fill(-1);
cases.failure.forEach((k, i) => { if (k >= 0 && k < failures.length) caseOfFailure[k] = i; });

/* Larger is worse: infinity and NaN first. */
function ratioOf(i) {
  const r = cases.worst_ratio[i];
  return typeof r === 'number' ? r : r === null ? -1 : Infinity;
}

/* Groups of failures with a common cause as the report has them, or else by what failed. */
function groupsOf() {
  if (listOf(data.groups).length) return data.groups;
  const groups = new Map();
  failures.forEach((f, k) => {
    const tensors = failedTensors(f).map(t => t.name).join(', ');
    const key = `${f.state} ${tensors}`;
    if (!groups.has(key)) groups.set(key, {title: tensors ? `${f.state}: ${tensors} wrong` : f.state, failures: [], plain: true});
    groups.get(key).failures.push(k);
  });
  return [...groups.values()].sort((a, b) => b.failures.length - a.failures.length);
}
