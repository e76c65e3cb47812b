/* Which cases are shown. */

const filter = {states: new Set(), kernel: '', backend: '', tensor: '', words: [], text: '', group: null};

function isFailureState(state) {
  return !GOOD.has(state) && state !== 'WAIVED';
}

const statesPresent = (() => {
  const counts = new Map();
  for (let i = 0; i < nCases; ++i) counts.set(stateOf(i), (counts.get(stateOf(i)) || 0) + 1);
  return STATES.filter(s => counts.has(s)).map(s => ({state: s, n: counts.get(s)}));
})();

/* The page opens with what is wrong, if anything is. */
function resetFilter() {
  Object.assign(filter, {kernel: '', backend: '', tensor: '', words: [], text: '', group: null});
  filter.states = new Set(statesPresent.map(s => s.state).filter(isFailureState));
}
resetFilter();

/* Feature words of each entry of their dictionary. */
const featureSets = cases.features.words.map(text => new Set(text.split(' ').filter(Boolean)));

function featureWords() {
  const counts = new Map();
  const uses = new Array(featureSets.length).fill(0);
  for (const v of cases.features.v) ++uses[v];
  featureSets.forEach((set, v) => set.forEach(w => counts.set(w, (counts.get(w) || 0) + uses[v])));
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function kernelName(i) {
  return wordOf('kernel', i).replace(/[<(].*/, '');
}

function textMatches(i, words) {
  const failure = failureOf(i);
  const text = `${cases.name[i]} ${wordOf('reason', i)} ${wordOf('notes', i)} ${wordOf('kernel', i)} ${wordOf('backend', i)} ` +
    `${wordOf('features', i)} ${failure ? listOf(failure.explained_by).map(e => `${e.hypothesis} ${e.text}`).join(' ') : ''}`;
  const lower = text.toLowerCase();
  return words.every(w => lower.includes(w));
}

/* Rows that the filter lets pass. */
function filteredRows() {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean), rows = [];
  const inGroup = filter.group && new Set(filter.group.failures.map(k => caseOfFailure[k]));
  for (let i = 0; i < nCases; ++i) {
    if (inGroup && !inGroup.has(i)) continue;
    if (filter.states.size && !filter.states.has(stateOf(i))) continue;
    if (filter.kernel && kernelName(i) !== filter.kernel) continue;
    if (filter.backend && wordOf('backend', i) !== filter.backend) continue;
    if (filter.tensor && !tensorNames[i].split(', ').includes(filter.tensor)) continue;
    if (filter.words.length && !filter.words.every(w => featureSets[cases.features.v[i]].has(w))) continue;
    if (words.length && !textMatches(i, words)) continue;
    rows.push(i);
  }
  return rows;
}

/* ---- the controls ---- */

function choice(label, key, options, changed) {
  if (options.length < 2 && !filter[key]) return null;
  const select = h('select', {'data-filter': key, onchange: () => { filter[key] = select.value; changed(); }},
    h('option', {value: ''}, 'any'), options.map(o => h('option', {value: o}, o)));
  select.value = filter[key];
  return h('label', {class: 'field'}, h('span', null, label), select);
}

function distinct(values) {
  return [...new Set(values)].filter(Boolean).sort();
}

function stateButtons(changed) {
  return h('div', {class: 'chips', role: 'group', 'aria-label': 'States shown'}, statesPresent.map(({state, n}) => {
    const button = h('button', {type: 'button', class: `chip ${stateClass(state)}`, 'data-state': state,
      'aria-pressed': String(filter.states.has(state)), onclick: () => {
        if (!filter.states.delete(state)) filter.states.add(state);
        changed();
      }}, h('b', null, count(n)), ` ${state}`);
    return button;
  }));
}

const allFeatureWords = featureWords();

function featureField(changed) {
  if (!allFeatureWords.length) return null;
  const select = h('select', {'data-filter': 'feature', onchange: () => {
    if (select.value && !filter.words.includes(select.value)) filter.words.push(select.value);
    changed();
  }}, h('option', {value: ''}, 'add a word'), allFeatureWords.map(([w, n]) => h('option', {value: w}, `${w} (${count(n)})`)));
  return h('label', {class: 'field'}, h('span', null, 'feature'), select);
}

/* What narrows the list besides the fields, each with a button that takes it away. */
function activeChips(changed) {
  const chip = (text, remove) => h('button', {type: 'button', class: 'chip', 'aria-label': `Remove ${text}`,
    onclick: () => { remove(); changed(); }}, text, h('span', {'aria-hidden': 'true'}, ' ×'));
  return [filter.group && chip(`cause: ${filter.group.title}`, () => { filter.group = null; }),
    filter.words.map(w => chip(w, () => { filter.words = filter.words.filter(x => x !== w); }))];
}

const kernelNames = distinct(cases.kernel.words.map(k => k.replace(/[<(].*/, '')));
const failedNames = distinct([...new Set(tensorNames)].flatMap(t => t.split(', ')));

/* The bar above the table. redraw: what is shown has changed. */
function filterBar(redraw) {
  const bar = h('div', {class: 'filters', role: 'search', 'aria-label': 'Filters'});
  const found = h('output', {class: 'found', 'aria-live': 'polite'});
  const search = h('input', {type: 'search', placeholder: 'name, reason, note, kernel', 'data-filter': 'text',
    oninput: () => { filter.text = search.value; redraw(); }});
  const changed = () => { build(); redraw(); };
  function build() {
    const focus = bar.contains(document.activeElement) && document.activeElement.dataset;
    bar.replaceChildren(stateButtons(changed), h('div', {class: 'fields'},
      h('label', {class: 'field grow'}, h('span', null, 'find'), search),
      choice('failed tensor', 'tensor', failedNames, changed), choice('kernel', 'kernel', kernelNames, changed),
      choice('backend', 'backend', distinct(cases.backend.words), changed), featureField(changed)),
      h('div', {class: 'chips'}, found, activeChips(changed),
        h('button', {type: 'button', class: 'plain', onclick: () => { resetFilter(); search.value = ''; changed(); }}, 'Reset')));
    const again = focus && (focus.state ? `[data-state="${focus.state}"]` : focus.filter ? `[data-filter="${focus.filter}"]` : null);
    if (again) bar.querySelector(again).focus();
  }
  build();
  return {node: bar, found, build, search};
}
