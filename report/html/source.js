// The source with margin marks: a diamond for writes, a circle for reads, in the colour of the state that needs most
// attention. A selected read draws an arrow in the margin from every definition in the file.

const ROW = 20;
const KEYWORDS = new Set(('alignas auto bool break case catch char class const constexpr continue default delete do double else enum extern false float for goto if inline int long ' +
  'mutable namespace new noexcept nullptr operator private protected public register return short signed sizeof static static_assert struct switch template this thread_local throw true try ' +
  'typedef typename union unsigned using virtual void volatile while _Atomic size_t uint8_t uint32_t uint64_t int64_t int32_t NULL').split(' '));
const sourceState = { file: null, focus: null };
let sourceList, arcs;
const blockStarts = new Map();  // file -> per line, whether it starts inside a block comment

function commentStarts(file) {
  if (blockStarts.has(file)) return blockStarts.get(file);
  let inside = false;
  const starts = (sourceLines.get(file) || []).map(text => {
    const before = inside;
    const plain = text.replace(/"(?:\\.|[^"\\])*"/g, '""').replace(inside ? /^\b$/ : /\/\/.*$/, '');
    inside = (plain.lastIndexOf('/*') > plain.lastIndexOf('*/')) || (inside && !plain.includes('*/'));
    return before;
  });
  blockStarts.set(file, starts);
  return starts;
}

function highlight(text, insideComment) {
  const out = [];
  const pattern = insideComment ? /^(.*?\*\/|.*$)/ : null;
  let rest = text;
  if (pattern) {
    const match = rest.match(pattern)[0];
    out.push(el('span', { class: 'c' }, match));
    rest = rest.slice(match.length);
  }
  const token = /(\/\/.*$|\/\*.*?(?:\*\/|$))|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|^\s*#.*$)|\b(\d[\w.']*)\b|\b([A-Za-z_]\w*)\b/g;
  let at = 0;
  for (const match of rest.matchAll(token)) {
    const kind = match[1] ? 'c' : match[2] ? 's' : match[3] ? 'n' : KEYWORDS.has(match[4]) ? 'k' : null;
    if (!kind) continue;
    out.push(rest.slice(at, match.index), el('span', { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  out.push(rest.slice(at));
  return out;
}

function renderLine(index) {
  const line = index + 1, file = sourceState.file;
  const entry = marks.get(file)?.get(line);
  const selection = current;
  const button = (kind, pairs, label) => el('button', { type: 'button', 'data-state': pairs.length ? worst(pairs) : 'unused', tabindex: '-1',
    'aria-label': label, title: label, onclick: event => { event.stopPropagation(); select({ file, line, kind }); } },
    el('i', { class: `mark ${kind}` }), pairs.length ? String(pairs.length) : '∅');
  const cells = el('span', { class: 'marks' });
  if (entry) {
    const open = pairs => pairs.filter(pair => pair.state !== 'explicit').length;
    if (entry.defs.length || entry.unused) {
      cells.append(button('def', entry.defs, entry.defs.length ? `${entry.defs.length} flows from the writes here, ${open(entry.defs)} not covered` : 'written here, and nothing reads it'));
    }
    if (entry.uses.length) cells.append(button('use', entry.uses, `${entry.uses.length} definitions reach the reads here, ${open(entry.uses)} not covered`));
  }
  const classes = ['row'];
  if (entry) classes.push('marked');
  if (changedLines.get(file)?.has(line)) classes.push('changed');
  const at = place => place && place.file === file && place.line === line;
  if (selection.pair && at(selection.pair.def)) classes.push('is-def');
  if (selection.pair && at(selection.pair.use)) classes.push('is-use');
  if (selection.file === file && selection.line === line) classes.push('is-line');
  return el('div', { class: classes.join(' '), 'data-line': line, onclick: entry ? () => select({ file, line }) : null },
    el('span', { class: 'no' }, String(line)), cells, el('span', { class: 'arcs' }),
    el('span', { class: 'text' }, ...highlight((sourceLines.get(file) || [])[index] || '', commentStarts(file)[index])));
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Arrows in the margin for the selected pair, or for every definition of the selected read.
function drawArcs() {
  arcs.replaceChildren();
  const entry = current.line ? marks.get(sourceState.file)?.get(current.line) : null;
  const pairs = current.pair ? [current.pair] : entry ? (current.kind === 'def' ? entry.defs : entry.uses.length ? entry.uses : entry.defs) : [];
  const colours = { explicit: 'explicit', 'implicit confirmed': 'confirmed', implicit: 'implicit', diverged: 'diverged', unknown: 'unknown', infeasible: 'infeasible', potential: 'potential' };
  for (const pair of pairs.slice(0, 60)) {
    if (!pair.def || !pair.use || pair.def.file !== sourceState.file || pair.use.file !== sourceState.file || !pair.def.line || !pair.use.line) continue;
    const from = (pair.def.line - .5) * ROW, to = (pair.use.line - .5) * ROW, bend = Math.max(6, 40 - Math.min(34, Math.abs(from - to) / 8));
    const colour = `var(--${colours[pair.state]})`;
    if (from === to) continue;
    arcs.append(svg('path', { d: `M40 ${from} C ${bend} ${from}, ${bend} ${to}, 36 ${to}`, fill: 'none', stroke: colour, 'stroke-width': 1.6, 'stroke-dasharray': pair.state === 'explicit' ? null : '4 3' }),
      svg('path', { d: `M42 ${to} l-7 -4 v8 z`, fill: colour }), svg('circle', { cx: 40, cy: from, r: 2.5, fill: colour }));
  }
}

function showFile(file, line) {
  const lines = sourceLines.get(file);
  if (sourceState.file !== file) {
    sourceState.file = file;
    byId('file').value = file;
    const coverage = data.files[file];
    byId('file-coverage').textContent = coverage && coverage.total ? `${coverage.covered} of ${coverage.total} pairs covered (${coverage.percent.toFixed(1)} %), ${coverage.predicted} predicted and not exercised` : '';
    byId('source').scrollTop = 0;
  }
  const count = lines ? lines.length : 0;
  sourceList.reset(count);
  arcs.setAttribute('height', count * ROW);
  byId('source').querySelector('.nothing')?.remove();
  if (!lines) byId('source').append(el('p', { class: 'nothing' }, file ? `The text of ${file} was not kept.` : 'No source is known.'));
  if (line) sourceList.reveal(line - 1, true);
  drawArcs();
}

function nextMarked(direction) {
  const lines = [...(marks.get(sourceState.file)?.keys() || [])].sort((a, b) => a - b);
  const from = current.line || (current.pair && current.pair.use.file === sourceState.file ? current.pair.use.line : 0);
  const next = direction > 0 ? lines.find(line => line > from) : lines.reverse().find(line => line < from);
  if (next) select({ file: sourceState.file, line: next });
}

function setUpSource() {
  sourceList = new VirtualList(byId('source'), ROW, renderLine);
  arcs = svg('svg', { class: 'arcs-overlay', width: 46, height: 0, 'aria-hidden': 'true' });
  sourceList.spacer.append(arcs);
  for (const file of files) byId('file').append(el('option', { value: file }, file));
  byId('file').addEventListener('change', event => showFile(event.target.value));
  byId('source').addEventListener('keydown', event => {
    if (event.key === 'n' || event.key === 'p') nextMarked(event.key === 'n' ? 1 : -1);
  });
}
