/* Elements, numbers and the clipboard. Text reaches the page only as text nodes, never as markup. */

/* An element: attributes (on*: listeners; null, false: left out) and children (text, elements, null, arrays of these). */
function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false && c !== ''));
  return node;
}

function count(n) {
  return Number(n).toLocaleString('en-US');
}

function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many || one + 's'}`;
}

/* Four significant digits, or so many as asked for; "inf" and "nan" are text in a report. */
function fmt(x, digits = 4) {
  if (typeof x !== 'number') return x === null || x === undefined ? '' : String(x);
  if (x === 0 || !Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (size < 1e-4 || size >= 1e7) return x.toExponential(digits - 1).replace(/\.?0+e/, 'e').replace('e+', 'e');
  return x.toLocaleString('en-US', {maximumSignificantDigits: digits});
}

/* As many digits as show that two numbers differ. */
function digitsThatDiffer(got, want) {
  if (typeof got !== 'number' || typeof want !== 'number' || got === want) return 4;
  const size = Math.max(Math.abs(got), Math.abs(want));
  return Math.min(17, Math.max(4, Math.ceil(Math.log10(size / Math.abs(got - want))) + 2));
}

function percent(share) {
  return share >= 0.9995 && share < 1 ? '> 99.9 %' : `${fmt(100 * share, 3)} %`;
}

function seconds(x) {
  if (typeof x !== 'number') return '';
  return x < 1 ? `${fmt(1000 * x, 3)} ms` : `${fmt(x, 3)} s`;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', {class: 'offscreen'});
    area.value = text;
    document.body.append(area);
    area.select();
    const good = document.execCommand('copy');
    area.remove();
    return good;
  }
}

/* A command or a recipe with a button that copies it. */
function codeBlock(text, label) {
  const button = h('button', {type: 'button', class: 'copy', 'aria-label': `Copy ${label}`, onclick: async () => {
    button.textContent = await copyText(text) ? 'Copied' : 'Select it';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }}, 'Copy');
  return h('div', {class: 'code'}, h('pre', {tabindex: '0', 'aria-label': label}, text), button);
}

function section(id, title, ...children) {
  return h('section', {id, 'aria-labelledby': `${id}-title`}, h('h2', {id: `${id}-title`}, title), children);
}
