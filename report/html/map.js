/* A tensor's map: a strip over the sequence for each batch and head, and the worst of these as pictures. */

function decodeCells(text) {
  try {
    return Uint8Array.from(atob(text || ''), c => c.charCodeAt(0));
  } catch {
    return new Uint8Array(0);
  }
}

/* Positions that a cell covers: "q 128 to 143". */
function span(axis, cell) {
  const first = cell * axis.step, last = Math.min(axis.extent, first + axis.step) - 1;
  return `${axis.name} ${first === last ? first : `${first} to ${last}`}`;
}

function placeName(map, at) {
  return listOf(map.panel).map((axis, k) => `${axis.name} ${listOf(at)[k]}`).join(', ') || 'all';
}

function isMap(map) {
  const axis = a => a && a.step > 0 && a.cells > 0 && a.cells <= 64 && a.extent > 0;
  return map && axis(map.row) && axis(map.column) && map.panels && map.strips;
}

/* A line at every `tile` positions, if cells are that fine. */
function tileLine(axis, tile) {
  return i => tile >= axis.step && tile > 0 && (i * axis.step) % tile === 0;
}

/* About six round positions. */
function tick(axis) {
  let every = axis.step;
  while (axis.extent / every > 8) every *= 2;
  return i => ((i * axis.step) % every === 0 ? String(i * axis.step) : '');
}

function stripGrid(map, cells, settings, view) {
  const {row, strips} = map, n = listOf(strips.at).length;
  return new Grid({rows: n, columns: row.cells, cell: (r, c) => cells[r * row.cells + c] || 0, peak: view.peak,
    rowLabel: r => placeName(map, strips.at[r]), columnLabel: tick(row), rowAxis: '', columnAxis: row.name,
    name: (r, c) => `${placeName(map, strips.at[r])}, ${span(row, c)}`,
    cellWidth: Math.max(3, Math.min(14, Math.floor(view.width / row.cells))) * settings.zoom, cellHeight: n > 40 ? 8 : 13,
    rowLines: () => n <= 40, columnLines: tileLine(row, settings.tile), say: view.say,
    label: `Strips of ${view.title}: ${plural(n, 'strip')} of ${plural(row.cells, 'cell')}. Arrow keys move.`});
}

function panelGrid(map, cells, k, settings, view) {
  const {row, column, panels} = map, base = k * row.cells * column.cells, place = placeName(map, panels.at[k]);
  const onKeys = column.name === 'k' || column.name === 'q';
  return new Grid({rows: row.cells, columns: column.cells, cell: (r, c) => cells[base + r * column.cells + c] || 0, peak: view.peak,
    rowLabel: tick(row), columnLabel: tick(column), rowAxis: row.name, columnAxis: column.name,
    name: (r, c) => `${place}, ${span(row, r)}, ${span(column, c)}`,
    cellWidth: Math.max(5, Math.min(16, Math.floor(256 / column.cells))) * settings.zoom,
    cellHeight: Math.max(4, Math.min(16, Math.floor(280 / row.cells))) * settings.zoom,
    rowLines: tileLine(row, settings.tile), columnLines: onKeys ? tileLine(column, settings.tile) : () => false, say: view.say,
    label: `Heat map of ${view.title}, ${place}: ${row.cells} by ${column.cells} cells of error over bound. Arrow keys move.`});
}

function tileSelect(settings, changed) {
  const select = h('select', {class: 'tile', onchange: () => { settings.tile = Number(select.value); changed(); }},
    [[0, 'none'], [16, '16'], [64, '64'], [128, '128']].map(([v, t]) => h('option', {value: String(v)}, t)));
  select.value = String(settings.tile);
  return h('label', {class: 'field'}, h('span', null, 'tile lines'), select);
}

function zoomButtons(settings, changed) {
  const button = (text, label, factor) => h('button', {type: 'button', 'aria-label': label, onclick: () => {
    settings.zoom = Math.max(1, Math.min(8, settings.zoom * factor));
    changed();
  }}, text);
  return h('div', {class: 'field', role: 'group', 'aria-label': 'Zoom'}, h('span', null, 'zoom'),
    h('span', null, button('−', 'Smaller', .5), button('+', 'Larger', 2)));
}

/* title: the tensor's name. */
function mapView(map, title) {
  if (!isMap(map)) return null;
  const strips = decodeCells(map.strips.cells), panels = decodeCells(map.panels.cells), all = [...strips, ...panels];
  const settings = {tile: map.row.extent > 64 ? 64 : 16, zoom: 1};
  const readout = h('output', {class: 'readout', 'aria-live': 'polite'}), body = h('div', {class: 'maps'});
  const hint = 'Point at a cell, or use Tab and the arrow keys.';
  const view = {title, peak: Math.max(...all.filter(c => c < CELL.BEYOND), CELL.ONE), width: Math.min(560, innerWidth - 150),
    say: text => { readout.textContent = text || hint; }};
  const nPanels = listOf(map.panel).reduce((n, a) => n * a.extent, 1);
  const nStrips = listOf(map.strips.at).length, shown = listOf(map.panels.at).length;
  const pictures = () => map.panels.at.map((at, k) => h('figure', null, h('figcaption', null, placeName(map, at)),
    h('div', {class: 'scroll'}, panelGrid(map, panels, k, settings, view).node)));
  const draw = () => {
    forgetGrids(body);
    body.replaceChildren(
      nPanels > 1 || map.column.extent > 1 ? h('figure', {class: 'strips'},
        h('figcaption', null, `Over ${map.row.name}, the worst of each ${listOf(map.panel).map(a => a.name).join(' and ') || 'row'}` +
          (nStrips < nPanels ? ` (the worst ${count(nStrips)} of ${count(nPanels)})` : '')),
        h('div', {class: 'scroll tall'}, stripGrid(map, strips, settings, view).node)) : '',
      ...pictures());
  };
  view.say('');
  draw();
  return h('div', {class: 'map'},
    h('div', {class: 'maphead'}, heatLegend(all, view.peak), tileSelect(settings, draw), zoomButtons(settings, draw)), readout, body,
    shown < nPanels && h('p', {class: 'quiet'}, `Pictures of the worst ${count(shown)} of ${count(nPanels)}; a cell has the largest error over bound of its elements.`));
}
