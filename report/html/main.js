/* The page: puts its parts together, and minds themes and paper. */

function themeButton() {
  const root = document.documentElement;
  const button = h('button', {type: 'button', class: 'theme', onclick: () => set(darkMode() ? 'light' : 'dark')});
  function name() {
    button.textContent = darkMode() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Change to ${darkMode() ? 'light' : 'dark'} colours`);
  }
  function set(theme) {
    root.dataset.theme = theme;
    try {
      localStorage.setItem('fa-verify-theme', theme);
    } catch { /* a page from a file may have no storage */ }
    name();
    redrawGrids();
  }
  try {
    const kept = localStorage.getItem('fa-verify-theme');
    if (kept === 'dark' || kept === 'light') root.dataset.theme = kept;
  } catch { /* the same */ }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { name(); redrawGrids(); });
  name();
  return button;
}

/* States as a bar: how much of the run failed. */
function shareBar() {
  const total = nCases || 1;
  return h('div', {class: 'share', 'aria-hidden': 'true'}, statesPresent.map(({state, n}) =>
    h('span', {class: stateClass(state), style: `flex-grow:${Math.max(n / total, .004)}`, title: `${count(n)} ${state}`})));
}

function headerParts(sections) {
  const links = sections.filter(Boolean).map(s => h('a', {href: `#${s.id}`}, s.querySelector('h2').textContent));
  document.querySelector('header').append(shareBar(), h('nav', {'aria-label': 'Sections'}, links, themeButton()));
}

function preparePrinting(table) {
  const paper = matchMedia('print');
  const print = on => { table.print(on); redrawGrids(); };
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(paper.matches));
  paper.addEventListener('change', () => print(paper.matches));
}

/* "#failure-3" opens failure 3, as "fa-verify repro REPORT.json:3" counts. */
function followAddress(results) {
  const wanted = /^#failure-(\d+)$/.exec(location.hash);
  if (wanted) results.open(Number(wanted[1]));
}

function start() {
  const results = resultsView();
  const sections = [comparisonSection(results), causesSection(results), results.node, kernelsSection(), skipsSection(), requireSection(),
    contradictionsSection(), triedSection()];
  headerParts(sections);
  document.getElementById('page').append(...sections.filter(Boolean));
  results.start();
  preparePrinting(results.table);
  addEventListener('hashchange', () => followAddress(results));
  followAddress(results);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
