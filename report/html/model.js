'use strict';
// The data, and what is derived from it once: marks per line, text to search in.

const data = JSON.parse(document.getElementById('data').textContent);

// In the order in which a reviewer should look; `glyph` tells states apart without colour.
const STATES = {
  'implicit confirmed': { glyph: '‼', label: 'confirmed', help: 'predicted, and replayed on the real program; no test has shown it' },
  'implicit': { glyph: '!', label: 'predicted', help: 'another schedule or input shows it; no test has' },
  'diverged': { glyph: '≠', label: 'diverged', help: 'predicted, but the replay left the schedule' },
  'unknown': { glyph: '?', label: 'unknown', help: 'not decided' },
  'potential': { glyph: '·', label: 'potential', help: 'allowed by static analysis, nothing else is known' },
  'explicit': { glyph: '✓', label: 'covered', help: 'seen in a recorded run' },
  'infeasible': { glyph: '–', label: 'infeasible', help: 'shown impossible within a bound' },
};
const STATE_ORDER = Object.keys(STATES);

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'class') node.className = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined && child !== ''));
  return node;
};
const byId = id => document.getElementById(id);

const shortFile = file => (file || '').split('/').pop();
const placeText = place => !place ? '' : place.line ? `${shortFile(place.file)}:${place.line}` : place.function || '(no source)';
const threadText = (path, start) => !path ? '' : start && start !== path ? `${start} (${path})` : path;
const definitionText = pair => pair.def_kind === 'initial' ? 'initial value' : pair.def_kind === 'external' ? 'outside what was recorded' : placeText(pair.def);

const sourceLines = new Map();
for (const [file, text] of Object.entries(data.sources)) sourceLines.set(file, text.replace(/\r\n?/g, '\n').split('\n'));
const lineText = place => (place && place.line && sourceLines.has(place.file) ? sourceLines.get(place.file)[place.line - 1] || '' : '').trim();

const pairsById = new Map();
const changedLines = new Map();
if (data.change) for (const [file, lines] of Object.entries(data.change.lines)) changedLines.set(file, new Set(lines));
const untested = new Set(data.change ? data.change.untested : []);

// file -> line -> { defs: [pair], uses: [pair] }
const marks = new Map();
const markAt = (place, kind, pair) => {
  if (!place || !place.line) return;
  if (!marks.has(place.file)) marks.set(place.file, new Map());
  const lines = marks.get(place.file);
  if (!lines.has(place.line)) lines.set(place.line, { defs: [], uses: [] });
  lines.get(place.line)[kind].push(pair);
};
const worst = pairs => STATE_ORDER[Math.min(...pairs.map(pair => STATE_ORDER.indexOf(pair.state)))];

for (const pair of data.pairs) {
  pairsById.set(pair.id, pair);
  markAt(pair.use, 'uses', pair);
  if (pair.def) markAt(pair.def, 'defs', pair);
  const threads = pair.flows.map(flow => `${flow.def_thread || ''} ${flow.def_start} ${flow.use_thread} ${flow.use_start}`).join(' ');
  const places = [pair.def, pair.use].filter(Boolean).map(place => `${place.file}:${place.line || ''} ${place.function}`).join(' ');
  pair.haystack = `${pair.id} ${pair.variable} ${places} ${threads} ${pair.relation} ${pair.fingerprint}`.toLowerCase();
}
// Definitions that nobody uses have a mark of their own.
for (const definition of data.unused_definitions) {
  if (!definition.place) continue;
  markAt(definition.place, 'defs', null);
  const entry = marks.get(definition.place.file)?.get(definition.place.line);
  if (entry) {
    entry.defs.pop();
    (entry.unused ||= []).push(definition);
  }
}
