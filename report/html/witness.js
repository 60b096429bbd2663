// The witness of a pair: one column per thread, time runs down, an arrow from the write to the read.

const COLUMN = 290, GAP = 70, STEP = 46, TOP = 66, BOX = 32, LEFT = 16;

// Long stretches of one thread fold into one row, except around the two accesses.
function foldSteps(witness, all) {
  const rows = [];
  const keep = index => index === witness.def_step || index === witness.use_step;
  let at = 0;
  while (at < witness.steps.length) {
    let end = at;
    while (end < witness.steps.length && witness.steps[end].thread === witness.steps[at].thread) ++end;
    for (let i = at; i < end;) {
      const far = !all && end - at > 6 && i >= at + 2 && i < end - 2 && !keep(i);
      if (!far) {
        rows.push({ index: i, step: witness.steps[i] });
        ++i;
        continue;
      }
      let last = i;
      while (last < end - 2 && !keep(last)) ++last;
      rows.push({ folded: last - i, thread: witness.steps[i].thread });
      i = last;
    }
    at = end;
  }
  return rows;
}

function clip(text, length) { return text.length > length ? text.slice(0, length - 1) + '…' : text; }

function drawWitness(pair, witness, all) {
  const rows = foldSteps(witness, all);
  // Columns by creation path: the main thread first.
  const order = witness.threads.map((thread, index) => index).sort((a, b) => witness.threads[a].path.localeCompare(witness.threads[b].path, 'en', { numeric: true }));
  const columnOf = order.reduce((columns, thread, column) => { columns[thread] = column; return columns; }, []);
  const initial = witness.def_step === null && witness.use_step !== null;
  const width = LEFT * 2 + witness.threads.length * COLUMN, height = TOP + rows.length * STEP + 20;
  const picture = svg('svg', { width, height, role: 'img', viewBox: `0 0 ${width} ${height}`, 'aria-label': `Schedule under which ${placeText(pair.use)} reads ${pair.variable} from ${definitionText(pair)}` });
  picture.append(svg('defs', {}, svg('marker', { id: 'head', viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse' }, svg('path', { d: 'M0 0 L10 5 L0 10 z', class: 'arrowhead' }))));
  const centre = thread => LEFT + columnOf[thread] * COLUMN + COLUMN / 2;
  order.forEach(column => {
    const thread = witness.threads[column];
    const name = svg('text', { x: centre(column), y: 20, 'text-anchor': 'middle', class: 'thread' });
    name.textContent = clip(thread.start || thread.path, 32);
    const path = svg('text', { x: centre(column), y: 36, 'text-anchor': 'middle', class: 'soft' });
    path.textContent = `thread ${clip(thread.path, 30)}`;
    picture.append(svg('line', { x1: centre(column), y1: 44, x2: centre(column), y2: height - 6, class: 'life' }), name, path);
  });
  const position = new Map();
  rows.forEach((row, n) => {
    const y = TOP + n * STEP;
    if (row.folded) {
      const note = svg('text', { x: centre(row.thread), y: y + 18, 'text-anchor': 'middle', class: 'soft' });
      note.textContent = `⋮ ${row.folded} more steps`;
      picture.append(svg('rect', { x: centre(row.thread) - 60, y: y + 4, width: 120, height: 20, fill: 'var(--panel)' }), note);
      return;
    }
    const { step, index } = row;
    const role = index === witness.def_step ? 'def' : index === witness.use_step ? 'use' : '';
    const x = centre(step.thread) - COLUMN / 2 + GAP / 2;
    position.set(index, { x: centre(step.thread), y: y + BOX / 2, left: x, right: x + COLUMN - GAP });
    const text = svg('text', { x: x + 8, y: y + 13 });
    text.textContent = clip(step.detail || lineText(step.place) || step.kind, 31);
    const where = svg('text', { x: x + 8, y: y + 27, class: 'soft' });
    where.textContent = clip([step.kind, step.place ? placeText(step.place) : '', step.skipped ? `(${step.skipped} before)` : ''].filter(Boolean).join('  '), 38);
    const title = svg('title', {});
    title.textContent = `${index + 1}. ${witness.threads[step.thread].path}: ${step.kind} ${step.detail || ''}\n${step.place ? `${step.place.file}:${step.place.line}  ${lineText(step.place)}` : ''}`;
    const group = svg('g', { class: `step ${role}` }, title, svg('rect', { x, y, width: COLUMN - GAP, height: BOX, rx: 5, class: 'box' }), text, where);
    if (step.place && step.place.line) group.addEventListener('click', () => showFile(step.place.file, step.place.line));
    picture.append(group);
  });
  const use = position.get(witness.use_step), def = position.get(witness.def_step);
  const label = (x, y) => {
    const node = svg('text', { x, y, 'text-anchor': 'middle', class: 'label' });
    node.textContent = clip(pair.variable, 24);
    picture.append(node);
  };
  if (use && def) {
    const same = def.x === use.x, right = use.x > def.x;
    const d = same ? `M${def.right} ${def.y} C ${def.right + 26} ${def.y}, ${use.right + 26} ${use.y}, ${use.right + 1} ${use.y}`
      : `M${right ? def.right : def.left} ${def.y} C ${(def.x + use.x) / 2} ${def.y}, ${(def.x + use.x) / 2} ${use.y}, ${right ? use.left - 1 : use.right + 1} ${use.y}`;
    picture.append(svg('path', { d, class: 'arrow', 'marker-end': 'url(#head)' }));
    label(same ? def.right - 30 : (def.x + use.x) / 2, (def.y + use.y) / 2 - 4);
  } else if (use && initial) {
    picture.append(svg('path', { d: `M${use.left - 2} 46 L ${use.left - 2} ${use.y - 8} Q ${use.left - 2} ${use.y} ${use.left + 1} ${use.y}`, class: 'arrow', 'marker-end': 'url(#head)' }));
    const node = svg('text', { x: use.left + 2, y: 56, class: 'label' });
    node.textContent = `${clip(pair.variable, 18)}: initial value`;
    picture.append(node);
  }
  return picture;
}

function showWitness(pair, all = false) {
  const panel = byId('witness');
  panel.replaceChildren();
  const witness = pair && pair.witness ? data.witnesses[pair.witness] : null;
  if (!pair) return;
  if (!witness) {
    panel.append(el('p', { class: 'nothing' }, pair.state === 'explicit' ? 'This flow was seen in a recorded run: it needs no witness.' : 'There is no witness for this pair.'));
    return;
  }
  const folded = foldSteps(witness, false).some(row => row.folded);
  const status = { confirmed: 'replayed on the real program', predicted: 'not replayed yet', diverged: 'the replay diverged' }[witness.status];
  panel.append(el('div', { class: 'head' }, el('b', {}, 'How it happens'), el('span', {}, `${witness.total} steps, predicted from run r${witness.run}, ${status}`),
    folded ? el('button', { type: 'button', class: 'plain', onclick: () => showWitness(pair, !all) }, all ? 'Fold long stretches' : 'Show every step') : null));
  if (witness.detail) panel.append(el('p', { class: 'warning' }, witness.detail));
  if (witness.outcome) panel.append(el('p', { class: 'warning' }, `Replayed, the run ends like this: ${witness.outcome}`));
  panel.append(drawWitness(pair, witness, all));
  // The read is what it is about: it comes into view, and the write with it where both fit.
  const use = panel.querySelector('.step.use'), def = panel.querySelector('.step.def');
  if (!use) return;
  const bottom = use.getBoundingClientRect().bottom - panel.getBoundingClientRect().top + panel.scrollTop;
  const top = (def || use).getBoundingClientRect().top - panel.getBoundingClientRect().top + panel.scrollTop;
  if (bottom > panel.clientHeight) panel.scrollTop = Math.max(bottom - panel.clientHeight + 12, Math.min(top - 12, bottom - panel.clientHeight / 2));
}
