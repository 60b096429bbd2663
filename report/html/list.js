// Lists that hold ten thousand rows: only what is in view exists.

class VirtualList {
  constructor(container, rowHeight, render) {
    this.container = container;
    this.rowHeight = rowHeight;
    this.render = render;
    this.count = 0;
    this.spacer = el('div', { class: 'spacer' });
    this.rows = new Map();
    container.append(this.spacer);
    container.addEventListener('scroll', () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(container);
  }
  reset(count) {
    this.count = count;
    this.spacer.style.height = `${count * this.rowHeight}px`;
    this.refresh();
  }
  refresh() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }
  draw() {
    const top = this.container.scrollTop, height = this.container.clientHeight || 600;
    const first = Math.max(0, Math.floor(top / this.rowHeight) - 8);
    const last = Math.min(this.count, Math.ceil((top + height) / this.rowHeight) + 8);
    for (const [index, row] of this.rows) {
      if (index >= first && index < last) continue;
      row.remove();
      this.rows.delete(index);
    }
    for (let index = first; index < last; ++index) {
      if (this.rows.has(index)) continue;
      const row = this.render(index);
      row.style.top = `${index * this.rowHeight}px`;
      this.rows.set(index, row);
      this.spacer.append(row);
    }
  }
  reveal(index, middle = false) {
    const top = index * this.rowHeight, height = this.container.clientHeight;
    if (middle) this.container.scrollTop = Math.max(0, top - height / 2);
    else if (top < this.container.scrollTop) this.container.scrollTop = top;
    else if (top + this.rowHeight > this.container.scrollTop + height) this.container.scrollTop = top + this.rowHeight - height;
    this.draw();
  }
}

// The left side: pairs, suspicious things, files.
const listState = { tab: 'pairs', query: '', states: new Set(STATE_ORDER), crossOnly: false, changedOnly: Boolean(data.change), hideSuppressed: true, items: [], selected: -1 };

const suspicious = [
  ...data.findings.map(finding => ({ sort: 'finding', finding, name: `${finding.kind}: ${finding.message}`, place: finding.place, state: 'finding', glyph: '✗' })),
  ...data.violations.filter(v => !v.suppressed && v.invariant !== 'Definition set').map(v => ({
    sort: 'violation', violation: v, pair: v.pair && pairsById.get(v.pair), name: `${v.invariant}: ${v.variable}`, place: v.use, state: 'violation', glyph: '!' })),
  ...data.unused_definitions.map(d => ({ sort: 'unused', definition: d, name: `${d.fate === 'dead' ? 'dead' : 'unused'} definition of ${d.variable}`, place: d.place, state: 'unused', glyph: '∅' })),
];
const files = [...new Set([...Object.keys(data.files), ...marks.keys()])].filter(file => file !== '').sort();

function matching() {
  const words = listState.query.toLowerCase().split(/\s+/).filter(Boolean);
  const has = haystack => words.every(word => haystack.includes(word));
  if (listState.tab === 'pairs') {
    const found = data.pairs.filter(pair => listState.states.has(pair.state) && (!listState.crossOnly || pair.cross_thread)
      && (!listState.changedOnly || !data.change || untested.has(pair.id) || data.change.added.includes(pair.id))
      && (!listState.hideSuppressed || !pair.suppressed) && has(pair.haystack));
    return found.sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state) || b.cross_thread - a.cross_thread);
  }
  if (listState.tab === 'suspicious') return suspicious.filter(item => has(`${item.name} ${placeText(item.place)}`.toLowerCase()));
  return files.filter(file => has(file.toLowerCase()));
}

function renderItem(index) {
  const item = listState.items[index];
  const common = { class: 'item', role: 'option', id: `item-${index}`, 'aria-selected': index === listState.selected ? 'true' : 'false', onclick: () => chooseItem(index) };
  if (listState.tab === 'files') {
    const coverage = data.files[item];
    const percent = coverage && coverage.total ? `${coverage.percent.toFixed(1)} % of ${coverage.total}` : 'nothing to cover';
    const open = coverage && coverage.predicted ? `${coverage.predicted} predicted, not exercised` : '';
    return el('div', { ...common, 'data-state': coverage && coverage.predicted ? 'implicit' : 'explicit' }, el('span', { class: 'glyph', 'aria-hidden': 'true' }, coverage && coverage.predicted ? '!' : '✓'),
      el('span', { class: 'name' }, item), el('span', { class: 'tags' }, el('span', { class: 'tag' }, percent)), el('span', { class: 'where' }, open));
  }
  if (listState.tab === 'suspicious') {
    return el('div', { ...common, 'data-state': item.state }, el('span', { class: 'glyph', 'aria-hidden': 'true' }, item.glyph), el('span', { class: 'name' }, item.name),
      el('span', { class: 'tags' }), el('span', { class: 'where' }, placeText(item.place)));
  }
  const tags = el('span', { class: 'tags' }, item.cross_thread ? el('span', { class: 'tag' }, 'threads') : null,
    item.relation === 'data race' ? el('span', { class: 'tag race' }, 'race') : null, item.suppressed ? el('span', { class: 'tag' }, 'suppressed') : null);
  return el('div', { ...common, 'data-state': item.state, 'aria-label': `${item.variable}, ${STATES[item.state].label}, from ${definitionText(item)} to ${placeText(item.use)}` },
    el('span', { class: 'glyph', title: STATES[item.state].help, 'aria-hidden': 'true' }, STATES[item.state].glyph), el('span', { class: 'name', title: item.variable }, item.variable), tags,
    el('span', { class: 'where' }, `${definitionText(item)} → ${placeText(item.use)}  ${item.use ? item.use.function : ''}`));
}

let list;
function refreshList(keep) {
  listState.items = matching();
  listState.selected = keep === undefined ? -1 : listState.items.indexOf(keep);
  list.reset(listState.items.length);
  const all = listState.tab === 'pairs' ? data.pairs.length : listState.tab === 'suspicious' ? suspicious.length : files.length;
  byId('count').textContent = listState.items.length === all ? `${all} ${listState.tab}` : `${listState.items.length} of ${all} ${listState.tab}`;
}

function chooseItem(index) {
  if (index < 0 || index >= listState.items.length) return;
  listState.selected = index;
  byId('list').setAttribute('aria-activedescendant', `item-${index}`);
  const item = listState.items[index];
  list.reveal(index);
  list.refresh();
  if (listState.tab === 'files') showFile(item);
  else if (listState.tab === 'pairs') select({ pair: item });
  else if (item.pair) select({ pair: item.pair, violation: item.violation });
  else if (item.place) select({ file: item.place.file, line: item.place.line, note: item });
  else select({ note: item });
}

function setUpList() {
  list = new VirtualList(byId('list'), 54, renderItem);
  byId('list').addEventListener('keydown', event => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step) chooseItem(Math.max(0, Math.min(listState.items.length - 1, listState.selected + step)));
    else if (event.key === 'Home') chooseItem(0);
    else if (event.key === 'End') chooseItem(listState.items.length - 1);
    else if (event.key === 'Enter') byId('details').focus();
    else return;
    event.preventDefault();
  });
  const tabs = { pairs: `Pairs ${data.pairs.length}`, suspicious: `Suspicious ${suspicious.length}`, files: `Files ${files.length}` };
  for (const [name, label] of Object.entries(tabs)) {
    byId('tabs').append(el('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'list', onclick: () => { listState.tab = name; showTab(); refreshList(); } }, label));
  }
  const showTab = () => {
    for (const button of byId('tabs').children) button.setAttribute('aria-selected', button.id === `tab-${listState.tab}` ? 'true' : 'false');
    byId('chips').hidden = byId('checks').hidden = listState.tab !== 'pairs';
  };
  byId('tabs').addEventListener('keydown', event => {
    if (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft') return;
    const all = [...byId('tabs').children], at = all.indexOf(document.activeElement);
    const next = all[(at + (event.key === 'ArrowRight' ? 1 : all.length - 1)) % all.length];
    next.focus();
    next.click();
  });
  for (const state of STATE_ORDER) {
    const count = data.pairs.filter(pair => pair.state === state).length;
    if (!count) continue;
    const chip = el('button', { type: 'button', class: 'chip', 'data-state': state, 'aria-pressed': 'true', title: STATES[state].help }, `${STATES[state].glyph} ${STATES[state].label} ${count}`);
    chip.addEventListener('click', () => {
      const on = chip.getAttribute('aria-pressed') !== 'true';
      chip.setAttribute('aria-pressed', String(on));
      if (on) listState.states.add(state); else listState.states.delete(state);
      refreshList();
    });
    byId('chips').append(chip);
  }
  const check = (key, label) => byId('checks').append(el('label', {}, Object.assign(el('input', { type: 'checkbox', id: `check-${key}`,
    onchange: event => { listState[key] = event.target.checked; refreshList(); } }), { checked: listState[key] }), label));
  check('crossOnly', 'across threads only');
  if (data.change) check('changedOnly', 'touched by the change only');
  if (data.pairs.some(pair => pair.suppressed)) check('hideSuppressed', 'hide suppressed');
  byId('search').addEventListener('input', event => { listState.query = event.target.value; refreshList(); });
  showTab();
  refreshList();
}
