// Selection, details, header, theme, and links (#p12, #file:line) that bring a reader back to the same place.

let current = {};  // { pair } or { file, line, kind }, with { note, violation } from the list of suspicious things

const badge = state => el('span', { class: 'badge', 'data-state': state, title: STATES[state].help }, `${STATES[state].glyph} ${STATES[state].label}`);

function access(role, place, label, extra) {
  return el('button', { type: 'button', class: `access ${role}`, onclick: () => place && place.line && showFile(place.file, place.line) },
    el('span', { class: 'head' }, el('b', {}, label), el('span', {}, place ? `${placeText(place)} ${place.function ? 'in ' + place.function : ''}` : ''), extra || null),
    place ? el('code', { title: lineText(place) }, lineText(place) || place.text || '') : null);
}

function flowRows(pair) {
  return pair.flows.map(flow => {
    const from = flow.def_thread ? threadText(flow.def_thread, flow.def_start) : pair.def_kind === 'initial' ? 'initial value' : 'outside';
    const seen = flow.state === 'explicit' ? `seen ${flow.count} time${flow.count === 1 ? '' : 's'} in ${flow.runs.length} run${flow.runs.length === 1 ? '' : 's'}` : STATES[flow.state].label;
    return el('li', {}, `${from} → ${threadText(flow.use_thread, flow.use_start)}: ${seen}`);
  });
}

function showPair(pair, violation) {
  const panel = byId('details');
  const command = `stem replay ${pair.id}`;
  panel.replaceChildren(
    el('h2', {}, el('code', {}, pair.variable)),
    el('div', { class: 'facts' }, badge(pair.state), el('span', { class: 'tag' }, pair.id), pair.cross_thread ? el('span', { class: 'tag' }, 'across threads') : '',
      pair.relation !== 'unknown' ? el('span', { class: pair.relation === 'data race' ? 'tag race' : 'tag' }, pair.relation) : '', pair.bound ? el('span', { class: 'tag' }, `within this ${pair.bound}`) : ''),
    violation ? el('p', { class: 'warning' }, `${violation.invariant}: in passing runs this read ${violation.learned}.`) : '',
    pair.suppressed ? el('p', { class: 'warning' }, `Suppressed: ${pair.suppressed}`) : '',
    access('def', pair.def, pair.def_kind === 'write' ? 'written' : pair.def_kind === 'initial' ? 'the initial value' : 'written outside what was recorded'),
    access('use', pair.use, 'read'),
    el('h3', {}, 'Threads'), el('ul', {}, ...(pair.flows.length ? flowRows(pair) : [el('li', {}, 'not known')])),
    el('h3', {}, 'Evidence'), el('p', {}, pair.evidence),
    pair.witness ? el('div', { class: 'replay' }, el('code', {}, command), el('button', { type: 'button', class: 'plain', onclick: event => copy(command, event.target) }, 'Copy')) : '',
    el('p', {}, el('small', {}, 'fingerprint ', el('code', {}, pair.fingerprint))));
  showWitness(pair);
}

function copy(text, button) {
  navigator.clipboard?.writeText(text).then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Select and copy'; });
}

// Every definition that reaches the reads of a line, and every read that its writes reach.
function showLine(file, line, kind, note) {
  const entry = marks.get(file)?.get(line) || { defs: [], uses: [] };
  const panel = byId('details');
  const row = (pair, place, label) => el('button', { type: 'button', class: `access ${label}`, 'data-pair': pair.id, onclick: () => select({ pair }) },
    el('span', { class: 'head' }, badge(pair.state), el('b', {}, label === 'def' ? definitionText(pair) : placeText(pair.use)), el('span', {}, place && place.function ? `in ${place.function}` : '')),
    el('code', {}, place ? lineText(place) : ''),
    el('span', { class: 'head' }, pair.flows.length ? pair.flows.slice(0, 3).map(flow => label === 'def'
      ? `from ${flow.def_thread ? threadText(flow.def_thread, flow.def_start) : 'no thread'} to ${threadText(flow.use_thread, flow.use_start)}`
      : `to ${threadText(flow.use_thread, flow.use_start)}`).join('; ') : 'threads not known'));
  const groups = (pairs, heading, placeOf, role) => {
    const out = [];
    for (const variable of [...new Set(pairs.map(pair => pair.variable))]) {
      const all = pairs.filter(pair => pair.variable === variable).sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state));
      out.push(el('h3', {}, heading(variable, all.length)), ...all.slice(0, 200).map(pair => row(pair, placeOf(pair), role)));
      if (all.length > 200) out.push(el('p', {}, `and ${all.length - 200} more: search for ${variable}`));
    }
    return out;
  };
  const reads = groups(entry.uses, (variable, n) => `read of ${variable}: ${n} definition${n === 1 ? '' : 's'} reach${n === 1 ? 'es' : ''} it`, pair => pair.def, 'def');
  const writes = groups(entry.defs, (variable, n) => `write of ${variable}: reaches ${n} read${n === 1 ? '' : 's'}`, pair => pair.use, 'use');
  const unused = (entry.unused || []).map(definition => el('p', { class: 'warning' }, definition.fate === 'dead'
    ? `The write of ${definition.variable} is dead: static analysis proves that no read can take it.` : `The write of ${definition.variable} is never used, in any trace or prediction.`));
  const finding = note && note.finding ? [el('p', { class: 'warning' }, `${note.finding.kind}: ${note.finding.message}`), el('div', { class: 'replay' }, el('code', {}, `stem replay ${note.finding.id}`))] : [];
  panel.replaceChildren(el('h2', {}, file ? `${shortFile(file)}:${line}` : 'Finding'), el('code', {}, lineText({ file, line })), ...finding, ...unused, ...(kind === 'def' ? [...writes, ...reads] : [...reads, ...writes]));
  byId('witness').replaceChildren(el('p', { class: 'nothing' }, reads.length || writes.length ? 'Choose a pair to see how it happens.' : ''));
}

function select(selection, fromHash = false) {
  current = selection;
  if (selection.pair) {
    const place = selection.pair.use.line ? selection.pair.use : selection.pair.def;
    showFile(place ? place.file : sourceState.file, place && place.line);
    showPair(selection.pair, selection.violation);
    if (!fromHash) history.replaceState(null, '', `#${selection.pair.id}`);
  } else {
    if (selection.file) showFile(selection.file, selection.line);
    showLine(selection.file, selection.line, selection.kind, selection.note);
    if (!fromHash && selection.file) history.replaceState(null, '', `#${encodeURIComponent(selection.file)}:${selection.line}`);
  }
}

function openHash() {
  const hash = location.hash.slice(1);
  const pair = pairsById.get(hash);
  if (pair) {
    select({ pair }, true);
    refreshList(pair);
    if (listState.selected >= 0) list.reveal(listState.selected, true);
    return true;
  }
  const at = hash.lastIndexOf(':');
  let file = hash.slice(0, at);
  try { file = decodeURIComponent(file); } catch { return false; }
  if (at <= 0 || !files.includes(file)) return false;
  select({ file, line: Number(hash.slice(at + 1)) || 1 }, true);
  return true;
}

function setUpHeader() {
  const c = data.coverage;
  document.title = `STEM: ${data.programs.join(', ') || 'report'}`;
  byId('programs').textContent = data.programs.join(', ');
  byId('subtitle').textContent = data.change ? `compared with ${data.change.base}: ${data.change.untested.length} pairs left untested` : `def-use coverage of ${data.runs.length} recorded run${data.runs.length === 1 ? '' : 's'}`;
  const parts = [['explicit', c.covered, 'covered'], ['implicit', c.predicted, `predicted, not exercised (${c.confirmed} confirmed)`], ['infeasible', c.infeasible_in_bound, 'infeasible within a bound'], ['unknown', c.unknown, 'unknown']];
  const bar = el('div', { class: 'bar', role: 'img', 'aria-label': parts.map(part => `${part[1]} ${part[2]}`).join(', ') });
  const legend = el('div', { class: 'parts' });
  for (const [state, count, label] of parts) {
    if (count) bar.append(el('span', { style: `flex: ${count}; background: var(--${state})` }));
    legend.append(el('span', {}, el('i', { class: 'dot', style: `background: var(--${state})` }), el('b', {}, String(count)), ` ${label}`));
  }
  legend.append(el('span', {}, 'not counted: ', el('b', {}, String(c.infeasible)), ' infeasible, ', el('b', {}, String(c.suppressed)), ' suppressed'));
  byId('coverage').append(el('div', { class: 'figure' }, c.percent === null ? 'nothing to cover' : `${c.percent.toFixed(1)} %`, el('small', {}, ` of ${c.total} def-use pairs`)), bar, legend);

  const about = byId('about');
  about.append(el('h2', {}, 'What is counted'), el('p', {}, 'A pair is a write (or the initial value) and a read that can take its value. Covered: a recorded run showed it. Predicted: another schedule or input of the recorded program shows it. The percentage is of all pairs known, but those that are impossible in the whole program and those suppressed with a reason.'));
  if (data.notes.length) about.append(el('h2', {}, 'Notes'), el('ul', {}, ...data.notes.map(note => el('li', {}, note))));
  about.append(el('h2', {}, 'Runs'), el('table', {}, el('tr', {}, ...['run', 'program', 'mode', 'inputs', 'outcome', 'events', 'pairs'].map(name => el('th', {}, name))),
    ...data.runs.slice(0, 200).map(run => el('tr', {}, ...[run.id, run.program, run.mode, run.inputs, `${run.outcome} ${run.exit_code}`, run.events, run.pairs].map(value => el('td', {}, String(value)))))));
  about.append(el('h2', {}, 'Keys'), el('p', {}, 'Arrows move in the list, n and p go to the next and previous marked line of the source, / searches.'));
  byId('about-button').addEventListener('click', event => {
    about.hidden = !about.hidden;
    event.target.setAttribute('aria-expanded', String(!about.hidden));
  });
}

function setUpTheme() {
  const store = (value) => { try { if (value) localStorage.setItem('stem-theme', value); return localStorage.getItem('stem-theme'); } catch { return null; } };
  const apply = theme => {
    document.documentElement.dataset.theme = theme;
    byId('theme').textContent = theme === 'dark' ? '☀ Light' : '☾ Dark';
  };
  const preferred = matchMedia('(prefers-color-scheme: dark)');
  apply(store() || (preferred.matches ? 'dark' : 'light'));
  preferred.addEventListener('change', event => { if (!store()) apply(event.matches ? 'dark' : 'light'); });
  byId('theme').addEventListener('click', () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    store(next);
    apply(next);
  });
}

setUpTheme();
setUpHeader();
setUpList();
setUpSource();
document.addEventListener('keydown', event => {
  if (event.key === '/' && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
    event.preventDefault();
    byId('search').focus();
  }
});
addEventListener('hashchange', openHash);
if (!openHash()) {
  if (listState.items.length) chooseItem(0);
  else if (files.length) showFile(files[0]);
}
document.documentElement.dataset.ready = 'true';
