/* Tables: a small one with all its rows, and one that has only the rows in sight, for any number of rows. */

/* columns: {key, title, numeric, wide, value(row) for sorting, cell(row) for showing}. onSort(key, direction). */
function headerRow(columns, sort, onSort) {
  const cells = columns.map(c => {
    const button = h('button', {type: 'button', onclick: () => onSort(c)}, c.title, h('span', {class: 'arrow', 'aria-hidden': 'true'}));
    return h('th', {scope: 'col', class: columnClass(c), 'aria-sort': 'none', 'data-key': c.key}, c.value ? button : c.title);
  });
  showSort(cells, sort);
  return h('tr', null, cells);
}

function columnClass(c) {
  return [c.numeric && 'n', c.wide && 'wide', `c-${c.key}`].filter(Boolean).join(' ');
}

function showSort(cells, sort) {
  for (const th of cells) {
    const mine = sort && th.dataset.key === sort.key;
    th.setAttribute('aria-sort', mine ? (sort.down ? 'descending' : 'ascending') : 'none');
  }
}

/* The next order after a click: numbers begin with the largest. */
function nextSort(sort, column) {
  if (sort && sort.key === column.key) return {key: column.key, down: !sort.down};
  return {key: column.key, down: !!column.numeric};
}

function comparer(value, down) {
  const sign = down ? -1 : 1;
  return (a, b) => {
    const x = value(a), y = value(b);
    return x < y ? -sign : x > y ? sign : 0;
  };
}

const MOST_ROWS = 200;

/* All rows, at most MOST_ROWS of them until asked for more. */
function smallTable(columns, rows, caption, sort) {
  const body = h('tbody'), more = h('button', {type: 'button', onclick: () => { limit = Infinity; show(); }});
  let order = rows.slice(), limit = MOST_ROWS;
  const show = () => {
    body.replaceChildren(...order.slice(0, limit).map(row =>
      h('tr', null, columns.map(c => h('td', {class: columnClass(c)}, c.cell ? c.cell(row) : c.value(row))))));
    more.hidden = order.length <= limit;
    more.textContent = `Show all ${count(order.length)} rows`;
  };
  const head = headerRow(columns, sort, column => {
    sort = nextSort(sort, column);
    order.sort(comparer(column.value, sort.down));
    showSort(head.children, sort);
    show();
  });
  if (sort) order.sort(comparer(columns.find(c => c.key === sort.key).value, sort.down));
  show();
  const table = h('table', null, h('caption', {class: 'offscreen'}, caption), h('thead', null, head), body);
  return h('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption}, table, more);
}

const ROW_HEIGHT = 36; /* as in page.css */
const PRINTED_ROWS = 1000, PRINTED_DETAILS = 100;

/* Rows are numbers; rows in sight alone are elements. A row can be open: its details stand below it. */
class LongTable {
  constructor(columns, detail, caption) {
    this.columns = columns;
    this.detail = detail;
    this.sort = null;
    this.rows = this.shown = [];
    this.open = new Map(); /* row -> {node, height} */
    this.head = headerRow(columns, null, c => this.sortBy(nextSort(this.sort, c)));
    this.body = h('tbody');
    this.table = h('table', {class: 'long', 'aria-rowcount': '0'}, h('caption', {class: 'offscreen'}, caption),
      h('thead', null, this.head), this.body);
    this.watch = new ResizeObserver(entries => this.measured(entries));
    this.scheduled = false;
    addEventListener('scroll', () => this.later(), {passive: true});
    addEventListener('resize', () => this.later());
  }

  /* A cell may not span columns that a narrow window or paper hides: they would take room. */
  span() {
    const n = this.printing ? this.columns.filter(c => !c.wide).length : [...this.head.children].filter(th => getComputedStyle(th).display !== 'none').length || this.columns.length;
    for (const {node} of this.open.values()) node.firstChild.colSpan = n;
    return n;
  }

  setRows(rows) {
    this.rows = rows;
    this.arrange();
  }

  sortBy(sort) {
    this.sort = sort;
    showSort(this.head.children, sort);
    this.arrange();
  }

  arrange() {
    this.shown = this.rows;
    if (this.sort) {
      const column = this.columns.find(c => c.key === this.sort.key);
      this.shown = Array.from(this.rows).sort(comparer(column.value, this.sort.down));
    }
    this.table.setAttribute('aria-rowcount', String(this.shown.length + 1));
    this.placeOpen();
    this.draw();
  }

  /* Places of the open rows, in order. */
  placeOpen() {
    this.places = [];
    if (this.open.size) this.shown.forEach((row, at) => { if (this.open.has(row)) this.places.push(at); });
  }

  measured(entries) {
    for (const e of entries) {
      const open = this.open.get(Number(e.target.dataset.row));
      if (open && e.target.isConnected) open.height = e.target.offsetHeight;
    }
    this.later();
  }

  toggle(row, wanted) {
    const is = this.open.has(row);
    if (wanted === is) return;
    if (is) {
      const node = this.open.get(row).node;
      this.watch.unobserve(node);
      forgetGrids(node);
      this.open.delete(row);
    } else {
      const node = h('tr', {class: 'detail', 'data-row': String(row)},
        h('td', null, this.detail(row)));
      this.open.set(row, {node, height: 600});
      this.watch.observe(node);
    }
    this.placeOpen();
    this.draw();
  }

  /* Where the top of place `at` is below the first row's. */
  top(at) {
    let y = at * ROW_HEIGHT;
    for (const p of this.places) if (p < at) y += this.open.get(this.shown[p]).height;
    return y;
  }

  /* The place whose row, or details, are at y. */
  placeAt(y) {
    let before = 0;
    for (const p of this.places) {
      if ((p + 1) * ROW_HEIGHT + before > y) break;
      const height = this.open.get(this.shown[p]).height;
      if ((p + 1) * ROW_HEIGHT + before + height > y) return p;
      before += height;
    }
    return Math.floor((y - before) / ROW_HEIGHT);
  }

  later() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => { this.scheduled = false; this.draw(); });
  }

  draw() {
    const n = this.shown.length, y = -this.body.getBoundingClientRect().top;
    let first = Math.max(0, Math.min(n - 1, this.placeAt(Math.max(0, y - 300))));
    let last = Math.min(n, this.placeAt(Math.max(0, y) + innerHeight + 300) + 1);
    if (this.printing) { first = 0; last = Math.min(n, PRINTED_ROWS); }
    const focus = document.activeElement && this.body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
    const span = this.span(), nodes = [spacer(this.top(first), span)];
    for (let at = first; at < last; ++at) {
      nodes.push(this.rowNode(at));
      const open = this.open.get(this.shown[at]);
      if (open) nodes.push(open.node);
    }
    nodes.push(spacer(this.top(n) - this.top(last), span));
    this.replace(nodes);
    if (focus) this.focusRow(Number(focus));
  }

  /* Nodes that stay are not touched, so that what is open keeps its scrolling and focus. */
  replace(nodes) {
    const keep = new Set(nodes);
    for (const child of [...this.body.children]) if (!keep.has(child)) child.remove();
    nodes.forEach((node, i) => { if (this.body.children[i] !== node) this.body.insertBefore(node, this.body.children[i] || null); });
  }

  rowNode(at) {
    const row = this.shown[at], open = this.open.has(row);
    const tr = h('tr', {class: `row${open ? ' open' : ''}`, 'aria-rowindex': String(at + 2)},
      this.columns.map(c => h('td', {class: columnClass(c)}, c.key === 'name' ? this.nameButton(row, open) : c.cell(row))));
    tr.addEventListener('click', event => { if (!event.target.closest('button,a')) this.toggle(row); });
    return tr;
  }

  nameButton(row, open) {
    const name = cases.name[row] || '(unnamed)';
    return h('button', {type: 'button', class: 'name', title: name, 'data-row': String(row), 'aria-expanded': String(open),
      onclick: () => this.toggle(row), onkeydown: event => this.key(event, row)}, name);
  }

  focusRow(row) {
    const button = this.body.querySelector(`button.name[data-row="${row}"]`);
    if (button) button.focus({preventScroll: true});
  }

  /* Up and down move from name to name, also to rows that are not there yet. */
  key(event, row) {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!step) return;
    const at = this.shown.indexOf(row) + step;
    if (at < 0 || at >= this.shown.length) return;
    event.preventDefault();
    this.reveal(this.shown[at]);
    this.focusRow(this.shown[at]);
  }

  /* Scrolls a row into sight. */
  reveal(row) {
    const at = this.shown.indexOf(row);
    if (at < 0) return;
    const y = this.body.getBoundingClientRect().top + this.top(at);
    if (y < 80 || y > innerHeight - 2 * ROW_HEIGHT) scrollBy(0, y - innerHeight / 3);
    this.draw();
  }

  /* Before paper: every row up to a limit, and the details of the first failures. */
  print(on) {
    if (on === !!this.printing) return;
    this.printing = on;
    if (on) {
      this.wereOpen = new Set(this.open.keys());
      this.shown.filter(i => failureOf(i)).slice(0, PRINTED_DETAILS).forEach(i => this.toggle(i, true));
    } else {
      [...this.open.keys()].filter(i => !this.wereOpen.has(i)).forEach(i => this.toggle(i, false));
    }
    this.draw();
    if (on) openAll(this.body);
  }
}

/* Also what is inside of others, and what is made only when it is opened. */
function openAll(node) {
  for (const details of node.querySelectorAll('details:not([open])')) {
    if (details.build) details.build();
    details.open = true;
    openAll(details);
  }
}

function spacer(height, columns) {
  return h('tr', {class: 'space', 'aria-hidden': 'true'}, h('td', {colspan: String(columns), style: `height:${height}px`}));
}
