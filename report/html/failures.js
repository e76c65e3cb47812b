/* The results: filters and the table of cases. */

function explanationOf(i) {
  return listOf((failureOf(i) || {}).explained_by).map(e => e.text).join('; ');
}

/* A case that passed in a sample of its places is marked: not all of it was judged. */
function stateCell(i) {
  const state = stateOf(i);
  return h('span', {class: `state ${stateClass(state)}`, title: cases.sample[i]}, cases.sample[i] ? `${state} (sample)` : state);
}

function resultColumns() {
  const several = distinct(cases.backend.words).length > 1;
  const explained = failures.some(f => listOf(f.explained_by).length);
  const rank = new Map(STATES.map((s, k) => [s, k]));
  return [
    {key: 'state', title: 'state', value: i => rank.get(stateOf(i)), cell: stateCell},
    {key: 'name', title: 'case', value: i => cases.name[i]},
    {key: 'tensors', title: 'failed tensors', wide: true, value: i => tensorNames[i], cell: i => tensorNames[i]},
    explained && {key: 'explained', title: 'explained by', wide: true, value: explanationOf, cell: explanationOf},
    several && {key: 'backend', title: 'backend', wide: true, value: i => wordOf('backend', i), cell: i => wordOf('backend', i)},
    {key: 'kernel', title: 'kernel', wide: true, value: kernelName, cell: kernelName},
    {key: 'ratio', title: 'error / bound', numeric: true, value: ratioOf, cell: i => fmt(cases.worst_ratio[i])},
    {key: 'seconds', title: 'time', numeric: true, wide: true, value: i => cases.seconds[i] || 0, cell: i => seconds(cases.seconds[i])},
  ].filter(Boolean);
}

/* {node, show(group), open(failure number), table} */
function resultsView() {
  const detail = i => (failureOf(i) ? failureDetail(i, failureOf(i), addWord) : plainDetail(i, addWord));
  const table = new LongTable(resultColumns(), detail, 'Cases');
  const redraw = () => {
    const rows = filteredRows();
    bar.found.textContent = `${count(rows.length)} of ${plural(nCases, 'case')}`;
    table.setRows(rows);
  };
  const bar = filterBar(redraw);
  function addWord(word) {
    if (!filter.words.includes(word)) filter.words.push(word);
    bar.build();
    redraw();
  }
  function showGroup(group) {
    resetFilter();
    filter.group = group;
    filter.states = new Set();
    bar.search.value = '';
    bar.build();
    redraw();
    document.getElementById('results').scrollIntoView();
  }
  function open(k) {
    const row = caseOfFailure[k];
    if (row === undefined || row < 0) return;
    if (!table.shown.includes(row)) showGroup({title: cases.name[row], failures: [k]});
    table.toggle(row, true);
    table.reveal(row);
    table.focusRow(row);
  }
  const left = data.n_cases > nCases ? h('p', {class: 'quiet'}, `The first ${count(nCases)} of ${count(data.n_cases)} cases are here; the report has them all.`) : null;
  const node = section('results', 'Results', bar.node, table.table, left);
  return {node, table, showGroup, open, start: redraw};
}
