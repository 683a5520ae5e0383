// Stored results and recordings: two tables, links to reports, comparison of two results. All content is shown as
// plain text.
import { bytes, count, h, span, table } from './draw.js';
import { browse } from './browse.js';

const SHOWN = 50;
const STATES = { sealed: ['sealed', 'good'], being_written: ['being written', 'plain'], needs_recovery: ['needs recovery', 'bad'] };

const word = (text, tone) => h('span', { className: tone === 'plain' ? '' : `${tone}-text` }, text);
const link = (href, text) => h('a', { href, target: '_blank', rel: 'noopener' }, text);
const time = (text) => text.replace('T', ' ').replace('Z', '');
const last = (path) => path.split('/').filter(Boolean).pop() ?? path;

// Fills `element`; `context.fetchJson(path)` loads JSON from this server, `context.fetchEvent(path)` an event.
export function mount(element, context) {
  const [results, recordings] = [h('div'), h('div')];
  element.replaceChildren(results, recordings);
  const look = async () => {
    try {
      const [some, others] = await Promise.all(['results', 'recordings'].map((kind) => context.fetchJson(`/api/v1/${kind}`)));
      showResults(results, some, look);
      showRecordings(recordings, others, context);
    } catch (error) {
      results.replaceChildren(h('p', { className: 'error' }, `cannot list stored data: ${error.message}`));
    }
  };
  return look();
}

function showResults(place, list, look) {
  const chosen = [];
  const compare = h('a', { target: '_blank', rel: 'noopener' }, 'Compare the two');
  const hint = h('span', { className: 'note' }, 'Tick two results to compare them; the first is the baseline.');
  const tick = (id, box) => {
    const at = chosen.indexOf(id);
    if (at >= 0) chosen.splice(at, 1); else chosen.push(id);
    // At most two are ticked: the oldest choice is unticked.
    while (chosen.length > 2) place.querySelector(`[data-id="${chosen.shift()}"]`).checked = false;
    box.checked = chosen.includes(id);
    compare.hidden = chosen.length !== 2;
    compare.href = `/compare?a=${chosen[0]}&b=${chosen[1]}`;
  };
  const row = (one) => [
    h('label', {}, h('input', { type: 'checkbox', 'data-id': one.id, ariaLabel: `compare ${last(one.directory)}`, onchange: (event) => tick(one.id, event.target) }),
      link(`/results/${one.id}`, last(one.directory))),
    h('span', {}, word(one.answer, one.tone), one.interrupted ? ', stopped' : '', one.failure ? h('span', { className: 'error' }, `; ${one.failure}`) : null),
    one.workload.startsWith(one.kind) ? one.workload : `${one.kind} ${one.workload}`, time(one.created), one.machine ?? '–',
  ];
  const head = [{ name: 'result', className: 'path' }, { name: 'verdict' }, { name: 'test' }, { name: 'started, UTC' }, { name: 'machine' }];
  compare.hidden = true;
  place.replaceChildren(
    h('h3', {}, `Results: ${count(list.entries.length)}`),
    h('p', { className: 'row' }, hint, compare, h('button', { className: 'small', type: 'button', onclick: look }, 'Refresh')),
    ...folded(list, head, row));
}

function showRecordings(place, list, context) {
  const row = (one) => [
    h('span', {}, one.name, one.run === null ? '' : `, run ${one.run}`, one.directories.length > 1 ? `, ${one.directories.length} volumes` : '',
      one.missing_volumes.length > 0 ? word(`, ${one.missing_volumes.length} volumes missing`, 'bad') : null,
      Object.entries(one.metadata).map(([name, value]) => h('div', { className: 'note' }, `${name}: ${value}`)), details(one, context)),
    h('span', {}, word(...STATES[one.state]), one.ended ? `: ${one.ended}` : ''),
    time(one.created), count(one.streams), count(one.events), bytes(one.bytes),
    one.missing_events > 0 ? word(count(one.missing_events), 'bad') : '0',
  ];
  const head = [{ name: 'recording', className: 'path' }, { name: 'state' }, { name: 'started, UTC' }, { name: 'streams', figures: true },
    { name: 'events', figures: true }, { name: 'on disk', figures: true }, { name: 'missing', figures: true }];
  place.replaceChildren(h('h3', {}, `Recordings: ${count(list.entries.length)}`), ...folded(list, head, row));
}

// A table with its first rows visible, the rest folded, and the omitted entries.
function folded(list, head, row) {
  const { entries, unreadable } = list;
  const rest = entries.length > SHOWN && h('details', {}, h('summary', {}, `${count(entries.length - SHOWN)} older ones`));
  // Folded rows are created on demand.
  if (rest) rest.addEventListener('toggle', () => rest.append(table(head, entries.slice(SHOWN).map(row), 'stack')), { once: true });
  return [
    entries.length > 0 && table(head, entries.slice(0, SHOWN).map(row), 'stack'), rest,
    unreadable.length > 0 && h('details', {}, h('summary', {}, `${count(unreadable.length)} unreadable`),
      table([{ name: 'directory', className: 'path' }, { name: 'cause' }], unreadable.map((one) => [one.directory, one.why]), 'stack')),
    list.left_out && h('p', { className: 'note' }, list.left_out),
  ].filter(Boolean);
}

// Streams and directories of a recording, loaded on demand.
function details(one, context) {
  const box = h('details', {}, h('summary', {}, 'streams and volumes'));
  box.addEventListener('toggle', async () => {
    const body = h('div', {}, one.directories.map((path) => h('div', { className: 'note' }, path)));
    box.append(body);
    try {
      const info = await context.fetchJson(`/recordings/${one.id}`);
      body.append(streams(one.id, Object.entries(info.streams), context), ...info.damaged_lines.map((line) => h('p', { className: 'error' }, `${line.file}, line ${line.line}: ${line.what}`)));
    } catch (error) {
      body.append(h('p', { className: 'error' }, error.message));
    }
  }, { once: true });
  return box;
}

// `recording` is its id, `list` the summary of each stream.
function streams(recording, list, context) {
  const place = h('div');
  const look = ([id, one]) => one.events > 0 && h('button', {
    type: 'button', className: 'small', onclick: () => place.replaceChildren(browse(recording, id, one, context.fetchEvent)),
  }, 'browse events');
  const row = (stream) => {
    const [id, one] = stream;
    const seconds = one.first_timestamp_ns === null ? null : (one.last_timestamp_ns - one.first_timestamp_ns) / 1e9;
    const missing = Object.values(one.missing).reduce((sum, events) => sum + events, 0);
    return [h('span', {}, `${id} ${one.name} `, look(stream)), one.shape.length ? `${one.element} ${one.shape.join('×')}` : 'bytes', count(one.events), bytes(one.payload_bytes), span(seconds), missing > 0 ? word(count(missing), 'bad') : '0'];
  };
  const head = [{ name: 'stream', className: 'path' }, { name: 'type' }, { name: 'events', figures: true }, { name: 'payload', figures: true },
    { name: 'time span', figures: true }, { name: 'missing', figures: true }];
  const parts = [table(head, list.slice(0, SHOWN).map(row), 'stack')];
  if (list.length > SHOWN) parts.push(h('p', { className: 'note' }, `and ${count(list.length - SHOWN)} more`));
  return h('div', {}, parts, place);
}
