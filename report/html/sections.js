/* What stands around the results: causes, a comparison with another report, kernels, skips. */

/* ---- causes ---- */

/* What the group's cases are like: docs/reference/report.md, "Groups". */
function predicateText(p) {
  if (!p || (!p.text && p.kind !== 'every')) return null;
  const counts = `${count(p.failing)} of ${count(p.failing_of)} failures, ${count(p.others)} of ${plural(p.others_of, 'case')} that passed`;
  if (!p.text) return h('p', null, `Nearly every case that was judged: ${counts}.`);
  return h('p', null, p.kind === 'none' ? 'Nothing simple tells them apart; nearest is ' : 'When ', h('code', {class: 'predicate'}, p.text), `: ${counts}.`);
}

/* The smallest case may be a shrunk one, which is nobody's failure. */
function groupCommand(group, k) {
  const smallest = group.smallest || {}, failure = failures[k];
  if (group.plain || !failure) return null;
  return (smallest.shrunk && failure.shrunk && failure.shrunk.run) || failure.run;
}

function groupCard(group, results) {
  const n = listOf(group.failures).length, smallest = group.smallest || {}, title = group.title || 'Failures';
  const k = Number.isInteger(smallest.failure) ? smallest.failure : listOf(group.failures)[0];
  const command = groupCommand(group, k), alternatives = listOf(group.alternatives);
  return h('li', {class: 'cause'},
    h('div', {class: 'causehead'}, h('b', {class: 'big'}, count(n)), h('div', null, h('h3', null, title),
      group.class && !title.startsWith(group.class) && h('span', {class: 'quiet'}, group.class), ' ', group.hypothesis && h('code', null, group.hypothesis))),
    predicateText(group.predicate),
    alternatives.length > 0 && h('p', {class: 'quiet'}, 'Or, for the same cases: ', alternatives.map((a, i) => [i ? '; ' : '', h('code', null, a)])),
    h('p', {class: 'actions'},
      h('button', {type: 'button', onclick: () => results.showGroup(group)}, `Show ${n === 1 ? 'it' : `all ${count(n)}`}`),
      failures[k] && h('button', {type: 'button', onclick: () => results.open(k)}, group.plain ? 'Open the first' : 'Open the smallest')),
    command && codeBlock(command, 'command for the smallest'));
}

function causesSection(results) {
  const groups = groupsOf();
  if (!groups.length) return null;
  const known = !groups[0].plain, most = 12;
  const cards = groups.map(g => groupCard(g, results));
  const list = h('ul', {class: 'causes'}, cards.slice(0, most));
  const more = cards.length > most && h('button', {type: 'button', onclick: event => { list.append(...cards.slice(most)); event.target.remove(); }},
    `Show ${count(cards.length - most)} more`);
  return section('causes', known ? 'Causes' : 'Failures by what is wrong', list, more);
}

/* ---- comparison ---- */

const KINDS = {new: 'fails now', changed: 'fails otherwise', fixed: 'no longer fails', slower: 'slower', faster: 'faster', skipped: 'skipped now',
  judged: 'judged now', added: 'only in the second', gone: 'only in the first'};

function sideText(side) {
  if (!side) return 'absent';
  return `${side.state}, ${seconds(side.seconds)}`;
}

function comparisonSection(results) {
  const c = data.comparison;
  if (!c) return null;
  const kinds = Object.keys(KINDS), rows = listOf(c.rows), chosen = new Set();
  const place = new Map(failures.map((f, k) => [`${f.name}\n${f.backend}`, k]));
  const open = row => {
    const k = place.get(`${row.name}\n${row.backend}`);
    const fails = k !== undefined && row.b && !GOOD.has(row.b.state);
    return fails ? h('button', {type: 'button', class: 'name', onclick: () => results.open(k)}, row.name) : row.name;
  };
  const columns = [
    {key: 'kind', title: 'change', value: r => kinds.indexOf(r.kind), cell: r => h('span', {class: `kind ${r.kind}`}, KINDS[r.kind] || r.kind)},
    {key: 'name', title: 'case', value: r => r.name, cell: open},
    {key: 'backend', title: 'backend', wide: true, value: r => r.backend},
    {key: 'a', title: 'first', value: r => sideText(r.a)}, {key: 'b', title: 'second', value: r => sideText(r.b)},
    {key: 'times', title: 'time, times', numeric: true, value: r => (r.a && r.b && r.a.seconds > 0 ? r.b.seconds / r.a.seconds : 0),
      cell: r => (r.a && r.b && r.a.seconds > 0 ? fmt(r.b.seconds / r.a.seconds, 3) : '')},
  ];
  const holder = h('div');
  const show = () => holder.replaceChildren(smallTable(columns, rows.filter(r => !chosen.size || chosen.has(r.kind)), 'What changed', {key: 'kind', down: false}));
  const chips = kinds.filter(k => c.counts[k] > 0).map(k => {
    const chip = h('button', {type: 'button', class: `chip ${k === 'new' ? 'bad' : k === 'fixed' ? 'good' : ''}`, 'aria-pressed': 'false', onclick: () => {
      if (!chosen.delete(k)) chosen.add(k);
      chip.setAttribute('aria-pressed', String(chosen.has(k)));
      show();
    }}, h('b', null, count(c.counts[k])), ` ${KINDS[k]}`);
    return chip;
  });
  show();
  const about = side => [h('code', null, side.path), ` ${[side.device, side.git, side.started].filter(Boolean).join(', ')}`];
  return section('comparison', 'Compared with another report', facts([['first', about(c.a)], ['second', about(c.b)]]),
    h('div', {class: 'chips'}, chips, h('span', {class: 'quiet'}, `${plural(c.same, 'case')} unchanged`)), rows.length ? holder : h('p', null, 'Nothing changed.'));
}

/* ---- counts ---- */

function kernelsSection() {
  const rows = Object.entries(data.kernels || {}).map(([name, n]) => ({name, ...n}));
  const table = kernelRows(rows);
  return table && section('kernels', 'Kernels', table);
}

function kernelRows(rows) {
  const counted = rows.length ? rows : countKernels();
  if (!counted.length) return null;
  const number = (key, title) => ({key, title, numeric: true, value: r => r[key] || 0, cell: r => (r[key] ? count(r[key]) : '0')});
  return smallTable([{key: 'name', title: 'kernel', value: r => r.name}, number('failed', 'failed'), number('error', 'error'), number('passed', 'passed'),
    number('skipped', 'skipped'), number('waived', 'waived')], counted, 'Cases by kernel', {key: 'failed', down: true});
}

/* Reports of older versions have no counts by kernel. */
function countKernels() {
  const rows = new Map();
  for (let i = 0; i < nCases; ++i) {
    const name = kernelName(i), state = stateOf(i);
    if (!name) continue;
    if (!rows.has(name)) rows.set(name, {name, failed: 0, error: 0, passed: 0, skipped: 0, waived: 0});
    ++rows.get(name)[state === 'PASS' ? 'passed' : state === 'SKIP' ? 'skipped' : state === 'ERROR' ? 'error' : state === 'WAIVED' ? 'waived' : 'failed'];
  }
  return [...rows.values()];
}

function skipsSection() {
  const rows = Object.entries((data.summary || {}).skip_reasons || {}).map(([reason, n]) => ({reason, n}));
  return rows.length ? section('skips', 'Skipped', smallTable([{key: 'n', title: 'cases', numeric: true, value: r => r.n, cell: r => count(r.n)},
    {key: 'reason', title: 'because', value: r => r.reason}], rows, 'Reasons for skips', {key: 'n', down: true})) : null;
}

/* Of random cases: what was drawn, and how much of it was judged. */
function triedSection() {
  const rows = Object.entries(data.tried || {}).filter(([, n]) => n && typeof n === 'object').map(([word, n]) => ({word, ...n}));
  const number = (key, title) => ({key, title, numeric: true, value: r => r[key] || 0, cell: r => count(r[key] || 0)});
  return rows.length ? section('tried', 'Drawn at random', smallTable([{key: 'word', title: 'feature', value: r => r.word}, number('wanted', 'cases drawn'),
    number('judged', 'judged')], rows, 'Features of random cases', {key: 'judged', down: false})) : null;
}

function contradictionsSection() {
  const rows = listOf(data.contradictions);
  return rows.length ? section('contradictions', 'Reports that differ', smallTable([{key: 'name', title: 'case', value: r => r.name},
    {key: 'backend', title: 'backend', value: r => r.backend}, {key: 'results', title: 'results',
      cell: r => listOf(r.results).map(x => `${x.state} (${fmt(x.worst_ratio)}) in ${x.report}`).join('; ')}], rows, 'Contradictions', null)) : null;
}

function requireSection() {
  const rows = listOf(data.require && data.require.items);
  return rows.length ? section('require', data.require.met ? 'Required, and judged' : 'Required, but not all judged',
    smallTable(Object.keys(rows[0]).filter(k => typeof rows[0][k] !== 'object').map(key => ({key, title: key, numeric: typeof rows[0][key] === 'number',
      value: r => r[key], cell: r => (typeof r[key] === 'number' ? fmt(r[key]) : String(r[key] ?? ''))})), rows, 'What was required', null)) : null;
}
