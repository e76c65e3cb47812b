/* A grid of cells on a canvas: colours, lines between tiles, a cell under the pointer or the arrow keys. Cells are the
 * bytes of a report's map: docs/reference/report.md. */

const CELL = {NOTHING: 0, ONE: 65, BEYOND: 250, CLASS: 253, UNWRITTEN: 254};

function ratioOfCell(code) {
  return 2 ** ((code - 1) / 8 - 8);
}

function cellText(code) {
  if (code === CELL.NOTHING) return 'nothing compared';
  if (code === CELL.UNWRITTEN) return 'never written';
  if (code === CELL.CLASS) return 'NaN or infinity where it must not be, or none where it must';
  if (code >= CELL.BEYOND) return `more than ${fmt(ratioOfCell(CELL.BEYOND), 2)} times the bound`;
  const ratio = fmt(ratioOfCell(code), 2);
  if (code <= CELL.ONE) return code === 1 ? 'within the bound' : `within the bound: ${ratio} of it`;
  return `${ratio} times the bound`;
}

/* Within the bound: greys that recede. Beyond: from pale to strong, in steps of lightness that a colour-blind reader sees
 * too. In the dark, strong is light. */
const PALETTES = {
  light: {neutral: ['#f2f4f6', '#ccd5de'], hot: ['#fdd38a', '#f08c2e', '#c43c1c', '#7d1128', '#33051f'], line: '#5d6b79', text: '#4a5662',
    hatch: ['#ffffff', '#20262c'], cursor: '#0b57d0'},
  dark: {neutral: ['#1f252b', '#3b4753'], hot: ['#6b2412', '#b04312', '#e58a1f', '#f7c95c', '#fff6d0'], line: '#9aa7b4', text: '#b3bfca',
    hatch: ['#20262c', '#e8edf2'], cursor: '#8ab4f8'},
};

function darkMode() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function palette() {
  return PALETTES[darkMode() && !matchMedia('print').matches ? 'dark' : 'light'];
}

function mix(stops, t) {
  const at = Math.max(0, Math.min(1, t)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  return `rgb(${[0, 1, 2].map(k => Math.round(part(stops[i], k) + (at - i) * (part(stops[i + 1], k) - part(stops[i], k)))).join(',')})`;
}

/* peak: the largest code that is a ratio. */
function cellColour(code, peak, p) {
  if (code <= CELL.ONE) return mix(p.neutral, code / CELL.ONE);
  return mix(p.hot, (Math.min(code, CELL.BEYOND) - CELL.ONE) / Math.max(24, peak - CELL.ONE));
}

function hatch(context, p, crossed) {
  const tile = h('canvas', {width: '6', height: '6'}), c = tile.getContext('2d');
  c.fillStyle = p.hatch[0];
  c.fillRect(0, 0, 6, 6);
  c.strokeStyle = p.hatch[1];
  c.lineWidth = 1.4;
  c.beginPath();
  for (const [x, y] of [[-3, 3], [0, 6], [3, 9]]) { c.moveTo(x, y); c.lineTo(x + 6, y - 6); }
  if (crossed) for (const [x, y] of [[-3, 3], [0, 0], [3, -3]]) { c.moveTo(x, y); c.lineTo(x + 6, y + 6); }
  c.stroke();
  return context.createPattern(tile, 'repeat');
}

const grids = new Set(); /* all that are drawn, for a change of theme */

/* g: {rows, columns, cell(r, c), peak, rowLabel(r), columnLabel(c), name(r, c), cellWidth, cellHeight, rowLines(r), columnLines(c),
 * rowAxis, columnAxis, label, say(text), press(r, c)}. Labels: '' for none at this cell. Lines: one above, or left of, the cell. */
class Grid {
  constructor(g) {
    this.g = g;
    this.cursor = null;
    this.canvas = h('canvas', {tabindex: '0', role: 'application', 'aria-roledescription': 'heat map', 'aria-label': g.label,
      onmousemove: e => this.hover(e), onmouseleave: () => this.move(null), onclick: e => this.press(e),
      onkeydown: e => this.key(e), onfocus: () => { if (!this.cursor) this.move(this.worst()); }, onblur: () => this.move(null)});
    this.node = h('div', {class: 'grid'}, this.canvas);
    grids.add(this);
    this.draw();
  }

  margins(context) {
    let left = 0;
    for (let r = 0; r < this.g.rows; ++r) left = Math.max(left, context.measureText(this.rowText(r)).width);
    return {left: Math.ceil(left) + 6, top: 15};
  }

  /* The first label of an axis also names it. */
  rowText(r) {
    return r === 0 ? `${this.g.rowAxis} ${this.g.rowLabel(0)}` : this.g.rowLabel(r);
  }

  draw() {
    const {g} = this, p = palette(), scale = devicePixelRatio || 1, font = '11px system-ui, sans-serif';
    const context = this.canvas.getContext('2d');
    context.font = font;
    Object.assign(this, this.margins(context));
    const width = this.left + g.columns * g.cellWidth + 14, height = this.top + g.rows * g.cellHeight + 2;
    this.canvas.width = Math.ceil(width * scale);
    this.canvas.height = Math.ceil(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    context.scale(scale, scale);
    context.font = font;
    this.drawCells(context, p);
    this.drawLines(context, p);
    this.drawLabels(context, p);
    if (this.cursor) this.drawCursor(context, p);
  }

  drawCells(context, p) {
    const {g} = this, nan = hatch(context, p, false), unwritten = hatch(context, p, true);
    for (let r = 0; r < g.rows; ++r)
      for (let c = 0; c < g.columns; ++c) {
        const code = g.cell(r, c);
        if (code === CELL.NOTHING) continue;
        context.fillStyle = code === CELL.CLASS ? nan : code === CELL.UNWRITTEN ? unwritten : cellColour(code, g.peak, p);
        /* Half a pixel more, which the next cell covers: else paper and zoomed screens have seams. */
        context.fillRect(this.left + c * g.cellWidth, this.top + r * g.cellHeight, g.cellWidth + .5, g.cellHeight + .5);
      }
  }

  drawLines(context, p) {
    const {g} = this, right = this.left + g.columns * g.cellWidth, bottom = this.top + g.rows * g.cellHeight;
    context.strokeStyle = p.line;
    context.lineWidth = 1;
    context.beginPath();
    context.rect(this.left - .5, this.top - .5, right - this.left + 1, bottom - this.top + 1);
    for (let r = 1; r < g.rows; ++r)
      if (g.rowLines(r)) { context.moveTo(this.left, this.top + r * g.cellHeight - .5); context.lineTo(right, this.top + r * g.cellHeight - .5); }
    for (let c = 1; c < g.columns; ++c)
      if (g.columnLines(c)) { context.moveTo(this.left + c * g.cellWidth - .5, this.top); context.lineTo(this.left + c * g.cellWidth - .5, bottom); }
    context.stroke();
  }

  drawLabels(context, p) {
    const {g} = this;
    context.fillStyle = p.text;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    let below = -Infinity;
    for (let r = 0; r < g.rows; ++r) {
      const y = this.top + r * g.cellHeight + Math.min(g.cellHeight / 2, 6);
      if (!g.rowLabel(r) || y < below) continue;
      context.fillText(this.rowText(r), this.left - 4, y);
      below = y + 11;
    }
    context.textAlign = 'left';
    let from = this.left;
    for (let c = 0; c < g.columns; ++c) {
      const x = this.left + c * g.cellWidth, text = c === 0 ? `${g.columnAxis} ${g.columnLabel(0)}` : g.columnLabel(c);
      if (!text || x < from) continue;
      context.fillText(text, x, 7);
      from = x + context.measureText(text).width + 8;
    }
  }

  drawCursor(context, p) {
    const {g} = this, [r, c] = this.cursor;
    context.strokeStyle = p.cursor;
    context.lineWidth = 2;
    context.strokeRect(this.left + c * g.cellWidth - 1, this.top + r * g.cellHeight - 1, g.cellWidth + 2, g.cellHeight + 2);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - this.left) / this.g.cellWidth);
    const r = Math.floor((event.clientY - box.top - this.top) / this.g.cellHeight);
    return r >= 0 && c >= 0 && r < this.g.rows && c < this.g.columns ? [r, c] : null;
  }

  hover(event) {
    this.move(this.at(event));
  }

  press(event) {
    const at = this.at(event);
    if (at && this.g.press) this.g.press(...at);
  }

  worst() {
    let best = [0, 0];
    for (let r = 0; r < this.g.rows; ++r)
      for (let c = 0; c < this.g.columns; ++c) if (this.g.cell(r, c) > this.g.cell(...best)) best = [r, c];
    return best;
  }

  move(at) {
    if (String(at) === String(this.cursor)) return;
    this.cursor = at;
    this.draw();
    this.g.say(at ? `${this.g.name(...at)}: ${cellText(this.g.cell(...at))}` : '');
  }

  key(event) {
    const [r, c] = this.cursor || [0, 0], {rows, columns} = this.g;
    const to = {ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], Home: [r, 0],
      End: [r, columns - 1], PageUp: [0, c], PageDown: [rows - 1, c]}[event.key];
    if (event.key === 'Enter' && this.g.press) this.g.press(r, c);
    if (!to) return;
    event.preventDefault();
    this.move([Math.max(0, Math.min(rows - 1, to[0])), Math.max(0, Math.min(columns - 1, to[1]))]);
  }
}

/* Before a part of the page is thrown away. What is only out of sight is still drawn anew. */
function forgetGrids(node) {
  grids.forEach(g => { if (node.contains(g.node)) grids.delete(g); });
}

function redrawGrids() {
  grids.forEach(g => g.draw());
}

function swatch(kind, text) {
  return h('span', {class: 'key'}, h('span', {class: `swatch ${kind}`, 'aria-hidden': 'true'}), text);
}

/* What the colours mean, of those that are there. */
function heatLegend(codes, peak) {
  const has = test => codes.some(test);
  return h('div', {class: 'legend'}, swatch('within', 'within the bound'),
    has(c => c > CELL.ONE && c <= CELL.BEYOND) && [swatch('beyond', `1 to ${fmt(ratioOfCell(Math.max(peak, CELL.ONE + 24)), 2)} times the bound`)],
    has(c => c === CELL.CLASS) && swatch('nan', 'NaN or infinity'),
    has(c => c === CELL.UNWRITTEN) && swatch('unwritten', 'never written'),
    has(c => c === CELL.NOTHING) && swatch('nothing', 'nothing compared'));
}
