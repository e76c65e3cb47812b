/* Everything about one case: what is wrong, why, where, and how to see it again. */

function facts(pairs) {
  const there = pairs.filter(([, value]) => value && (!Array.isArray(value) || value.length));
  return there.length ? h('dl', {class: 'facts'}, there.map(([name, value]) => [h('dt', null, name), h('dd', null, value)])) : null;
}

function featureButtons(i, addWord) {
  return [...featureSets[cases.features.v[i]]].map(w =>
    h('button', {type: 'button', class: 'word', title: `Show cases with ${w}`, onclick: () => addWord(w)}, w));
}

/* ---- explanations ---- */

function explanations(failure) {
  const list = listOf(failure.explained_by);
  if (!list.length) return null;
  return h('div', {class: 'explained'}, h('h3', null, list.length > 1 ? 'Explained equally well by' : 'Explained by'), list.map(e =>
    h('p', null, h('b', null, e.text), ` ${listOf(e.tensors).join(', ')}: ${percent(e.share)} of ${plural(e.wrong, 'wrong element')} are what this mistake gives` +
      `${e.sampled ? ', of those looked at' : ''} `, h('code', null, e.hypothesis))));
}

/* ---- tensors ---- */

const BOUND_PARTS = [['quant', 'quant', 'rounding of P or dS'], ['accum', 'accum', 'float32 arithmetic'], ['half_ulp', 'half ulp', 'rounding of the output']];

/* The bound as a stacked bar. */
function boundBar(point, withText) {
  const parts = point.bound_parts;
  if (!parts || typeof point.bound !== 'number' || !(point.bound > 0)) return null;
  const share = key => (typeof parts[key] === 'number' ? parts[key] / point.bound : 0);
  const bar = h('div', {class: 'stack', role: 'img', 'aria-label': BOUND_PARTS.map(([k, t]) => `${t} ${percent(share(k))}`).join(', ')},
    BOUND_PARTS.map(([k]) => h('span', {class: k, style: `width:${100 * Math.min(1, share(k))}%`})));
  if (!withText) return bar;
  return h('div', {class: 'bound'}, bar, h('div', {class: 'legend'}, BOUND_PARTS.map(([k, text, of]) =>
    h('span', {class: 'key', title: of}, h('span', {class: `swatch ${k}`, 'aria-hidden': 'true'}), `${text} ${fmt(parts[k])} (${percent(share(k))})`))));
}

function pointText(w, key) {
  return fmt(w[key], digitsThatDiffer(w.got, w.want));
}

function indexText(w) {
  return `[${listOf(w.index).join(',')}]`;
}

function worstSentence(w) {
  if (w.unwritten) return `The worst element, ${indexText(w)}, was never written.`;
  if (w.class_bad) return `The worst element, ${indexText(w)}, is ${pointText(w, 'got')} where ${pointText(w, 'want')} is wanted.`;
  return `The worst element, ${indexText(w)}, is ${pointText(w, 'got')} where ${pointText(w, 'want')} is wanted: off by ${fmt(w.err)}, ` +
    `${fmt(w.ratio)} times its bound of ${fmt(w.bound)}.`;
}

function worstTable(tensor) {
  const number = x => (typeof x === 'number' ? x : x === 'nan' || x === 'inf' ? Infinity : -Infinity);
  const column = (key, title, cell) => ({key, title, numeric: true, value: w => number(w[key]), cell});
  return smallTable([
    {key: 'index', title: 'element', value: w => indexText(w)},
    column('got', 'got', w => h('span', {title: `${w.got} ${w.got_bits || ''}`}, pointText(w, 'got'))),
    column('want', 'want', w => h('span', {title: String(w.want)}, pointText(w, 'want'))),
    column('err', 'error', w => fmt(w.err)), column('bound', 'bound', w => fmt(w.bound)), column('ratio', 'error / bound', w => fmt(w.ratio)),
    {key: 'parts', title: 'bound made of', cell: w => (w.unwritten ? 'never written' : w.class_bad ? 'NaN or infinity' : boundBar(w, false))},
  ], listOf(tensor.worst), `Worst elements of ${tensor.name}`, null);
}

function statisticsText(tensor) {
  const s = tensor.statistics;
  if (!s || !s.bad) return null;
  const why = s.text || s.why || `Over ${plural(s.count, 'element')} the errors have rms ${fmt(s.rms)} and mean ${fmt(s.bias)} of what rounding predicts.`;
  return h('p', null, 'The statistics of its errors are not those of rounding. ', why);
}

function wrongText(t) {
  return `${count(t.bad)} of ${plural(t.count, 'element')} wrong` + (t.class_bad ? `, ${count(t.class_bad)} of them NaN or infinity` : '') +
    (t.unwritten ? `, ${count(t.unwritten)} never written` : '');
}

function noMap(failure, tensor) {
  if (!(tensor.bad > 0)) return null;
  return h('p', {class: 'quiet'}, failure.maps_left_out || failure.brief ? 'No picture: only the first failures of a run have one.' : 'No picture: this report has none of it.');
}

function failedTensor(failure, t) {
  const worst = listOf(t.worst);
  const where = t.where && t.where.text;
  return h('div', {class: 'tensor'},
    h('h3', null, h('code', null, t.name), t.end_to_end ? ' end to end' : '', ' ', h('span', {class: 'quiet'}, t.bad ? wrongText(t) : '')),
    where && h('p', null, where[0].toUpperCase() + where.slice(1), '.'),
    t.vacuous && h('p', null, `The bound is so wide that it would let pass: ${t.vacuous}.`),
    t.bad === 0 && statisticsText(t),
    worst.length > 0 && [h('p', null, worstSentence(worst[0])), boundBar(worst[0], true)],
    mapView(t.map, t.name) || noMap(failure, t),
    worst.length > 1 && h('details', {open: worst.length < 4}, h('summary', null, `The ${worst.length} worst elements`), worstTable(t)));
}

function goodTensors(failure) {
  const list = listOf(failure.tensors).filter(t => t && !t.failed);
  if (!list.length) return null;
  return h('p', {class: 'quiet'}, 'Within their bounds: ', list.map((t, k) => [k ? ', ' : '', h('code', null, t.name), ` at most ${fmt(t.worst_ratio)} of it`]), '.');
}

/* ---- the case ---- */

function recipeOf(failure) {
  try {
    return JSON.parse(failure.recipe || '{}');
  } catch {
    return {}; /* it is shown as text */
  }
}

/* Expressions are hard to read escaped in JSON. */
function expressions(recipe) {
  return [['score_mod', recipe.score_mod && h('code', null, recipe.score_mod)], ['mask_mod', recipe.mask_mod && h('code', null, recipe.mask_mod)],
    ['buffers', recipe.buffers && Object.keys(recipe.buffers).map((name, k) => `${name} (dbuffer_${k})`).join(', ')]];
}

function shrunk(failure) {
  const s = failure.shrunk;
  if (!s || !s.case) return null;
  return h('details', null, h('summary', null, `Shrunk case${s.reproduced ? `, in ${s.reproduced} runs` : ''}`),
    s.failure && h('p', null, s.failure), s.run && codeBlock(s.run, 'command for the shrunk case'));
}

/* The first is open. The others are made when they are opened, for pictures take time; paper opens all. */
function tensorParts(failure) {
  return failedTensors(failure).map((t, k) => {
    if (k === 0) return failedTensor(failure, t);
    const summary = h('summary', null, h('code', null, t.name), t.end_to_end ? ' end to end' : '', ` ${tensorSummary(t)}`);
    const details = h('details', {class: 'tensor', ontoggle: () => details.build()}, summary);
    details.build = () => {
      if (details.children.length === 1) details.append(failedTensor(failure, t));
    };
    return details;
  });
}

function tensorSummary(t) {
  if (t.vacuous) return 'the bound is too wide';
  if (!t.bad) return 'statistics of its errors';
  return wrongText(t) + (typeof t.worst_ratio === 'number' ? `, at worst ${fmt(t.worst_ratio)} times the bound` : '');
}

function failureDetail(i, failure, addWord) {
  const recipe = recipeOf(failure);
  return h('div', {class: 'case'},
    recipe.note && h('p', {class: 'quiet'}, recipe.note),
    failure.reason && h('p', {class: 'reason'}, failure.reason),
    explanations(failure),
    failure.run && [h('h3', null, 'Run it again'), codeBlock(failure.run, 'command that repeats it')],
    tensorParts(failure),
    goodTensors(failure),
    facts([['sample', cases.sample[i]], ['note', failure.notes], ['waiver', failure.waiver], ['kernel', failure.kernel], ['backward', failure.backward_kernel],
      ['backend', failure.backend], ['profile', failure.profile], ['schedule seed', failure.schedule_seed !== '0' && failure.schedule_seed],
      ['file', failure.file], ['tensors kept in', failure.dump], ...expressions(recipe), ['features', featureButtons(i, addWord)],
      ['by number', failure.repro && h('code', null, failure.repro)]]),
    shrunk(failure),
    failure.recipe && h('details', null, h('summary', null, 'The case'), codeBlock(failure.recipe, 'the case as JSON')));
}

/* A case that passed or was skipped, or a failure that the page has no room for. */
function plainDetail(i, addWord) {
  const ratios = cases.ratios[i], pairs = [];
  for (let k = 0; k + 1 < ratios.length; k += 2) pairs.push([ratios[k], ratios[k + 1]]);
  return h('div', {class: 'case'},
    isFailureState(stateOf(i)) && h('p', null, 'The page has no room for its details: they are in the report.'),
    facts([['reason', wordOf('reason', i)], ['sample', cases.sample[i]], ['note', wordOf('notes', i)], ['waiver', wordOf('waiver', i)], ['kernel', wordOf('kernel', i)],
      ['backward', wordOf('backward_kernel', i)], ['backend', wordOf('backend', i)],
      ['error / bound', pairs.map(([name, r], k) => [k ? ', ' : '', h('code', null, name), ` ${fmt(r)}`])],
      ['features', featureButtons(i, addWord)]]));
}
