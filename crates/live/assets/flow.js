// Data flow: headline, rates, volumes, ledger and processors.
import { Lines, bar, bytes, count, fill, h, percent, perSecond, put, rate, section, span, table, tile, toneAbove } from './draw.js';

const PAST_SECONDS = 600;
// Rates of the last ten minutes, oldest first.
export const past = [];
let lines = null;

// Loads the history before the page was opened.
export async function recall(fetchJson) {
  const history = await fetchJson('/api/v1/history');
  past.splice(0, past.length, ...history);
}

// Adds a sample to the rates.
export function record(sample) {
  past.push(sample);
  while (past.length > PAST_SECONDS) past.shift();
}

function remember(now) {
  const flow = now.flow;
  record({
    t_unix_ms: now.t_unix_ms, received: flow.received_bytes_per_second / 1e6, written: flow.written_bytes_per_second / 1e6,
    durable: flow.durable_bytes_per_second / 1e6, pool: (100 * now.pool.used_bytes) / Math.max(1, now.pool.bytes),
  });
}

const WORDS = {
  idle: ['IDLE', ''], configured: ['CONFIGURED', ''], armed: ['ARMED', 'doubtful'], recording: ['RECORDING', 'good'],
  draining: ['DRAINING', 'doubtful'], sealed: ['SEALED', 'good'], error: ['ERROR', 'bad'],
};

// Parts of the headline for the figures of one recorder.
const ONE = { figures, weakened: (now) => now.volumes.some((volume) => volume.failure) };

// Headline: the state and the health of the run. `shown` has the parts that depend on the kind of figures.
export function headline(run, now, shown = ONE) {
  const [word, tone] = WORDS[run?.state] ?? ['…', ''];
  const active = now && ['recording', 'draining'].includes(run?.state);
  const troubled = active && (now.flow.missing_events > 0 || hasRejected(now));
  const weakened = active && shown.weakened(now);
  const about = run ? [
    run.run !== null && `run ${run.run}`, run.name,
    run.state === 'recording' && now && `for ${span(now.seconds)}`,
  ].filter(Boolean).join(', ') : '';
  const listens = run?.listen && ['armed', 'recording'].includes(run.state) ? `listening on ${run.listen}` : '';
  const verdict = h('div', { className: `verdict ${troubled ? 'bad' : weakened ? 'doubtful' : tone}` },
    h('p', { className: 'word' }, word), h('h1', {}, about), listens && h('h1', {}, listens),
    run?.error && h('p', { className: 'error' }, run.error));
  put(section('headline'), verdict, active ? shown.figures(now) : outcome(run));
  document.title = `${word.toLowerCase()} · keepup`;
}

// Whether data that arrived are not recorded, apart from those of strangers.
// A recorder has rows, a fleet counts by reason, without those of strangers.
const hasRejected = ({ flow: { rejected } }) => (Array.isArray(rejected) ? rejected.some((row) => !row.foreign) : Object.keys(rejected ?? {}).length > 0);

function figures(now) {
  const { flow, pool, margin } = now;
  return h('div', { className: 'tiles' },
    tile('in', rate(flow.received_bytes_per_second), `${perSecond(flow.received_events_per_second)}, ${flow.connections} connected`),
    tile('durable', rate(flow.durable_bytes_per_second), `${bytes(flow.durable.bytes)} in total`),
    tile('free memory bridges', pool.room_seconds === null ? '–' : span(pool.room_seconds), `${percent(pool.used_bytes / Math.max(1, pool.bytes))} of the pool in use`),
    tile('missing', count(flow.missing_events), flow.missing_events ? 'events' : 'nothing'),
    margin && tile('of the qualified rate', percent(margin.used), ends(margin)));
}

// Both ends of the qualification: the rate that held and the lowest one that failed.
function ends(margin) {
  const failed = margin.failed_above;
  return `${rate(margin.qualified_bytes_per_second)}${failed ? `; ${rate(failed.bytes_per_second)} failed` : ''}`;
}

// What the qualification found above the qualified rate.
function above(failed) {
  if (!failed) return 'no higher rate is proven';
  const lost = failed.lost_events > 0 ? `lost ${count(failed.lost_events)} event${failed.lost_events === 1 ? '' : 's'}` : 'failed';
  return `${rate(failed.bytes_per_second)} ${lost} in ${span(failed.seconds)}; rates between the two are not proven`;
}

const marginTone = (margin) => (margin.failed_above && margin.used * margin.qualified_bytes_per_second >= margin.failed_above.bytes_per_second ? 'bad'
  : margin.used > 0.9 ? 'doubtful' : '');

function outcome(run) {
  const last = run?.last;
  if (!last) return h('div');
  return h('div', {},
    h('p', {}, h('span', { className: last.whole ? 'good-text' : 'bad-text' }, last.whole ? 'complete' : 'incomplete'),
      `: ${last.run === null ? '' : `run ${last.run}, `}${last.name}, ${count(last.durable.events)} of ${count(last.received.events)} events durable, ${bytes(last.durable.bytes)} in ${span(last.seconds)}, ${last.ended}`),
    Object.entries(last.missing).map(([cause, events]) => h('p', { className: 'error' }, `${count(events)} events missing: ${cause}`)),
    last.incidents.slice(0, 5).map((incident) => h('p', { className: 'note' }, incident)),
    last.directories.map((directory) => h('p', { className: 'note' }, directory)),
    last.master && h('p', { className: 'note' }, `NeXus master (h5py): ${last.master}`));
}

// Current warnings; a finished run shows its outcome instead.
export function warnings(run, now, shown = ONE) {
  const place = section('warnings');
  const list = run && ['armed', 'recording', 'draining'].includes(run.state) ? (now?.warnings ?? []) : [];
  place.hidden = list.length === 0;
  place.className = now && (now.flow.missing_events > 0 || hasRejected(now) || shown.weakened(now)) ? '' : 'doubtful';
  place.replaceChildren(h('ul', {}, list.map((warning) => h('li', {}, warning))));
}

export function rates(now) {
  remember(now);
  const place = section('flow');
  if (!place.querySelector('.plot')) {
    fill('flow', h('div', { className: 'beside' }, h('div', { className: 'plot' }), h('div', { id: 'flow-facts' })));
    lines = new Lines(place.querySelector('.plot'), 'MB/s', [
      { name: 'in', colour: '--c1' }, { name: 'written', colour: '--c3', dash: true }, { name: 'durable', colour: '--c2' },
    ]);
  }
  if (!document.hidden) {
    const points = (key) => past.map((moment) => [moment.t_unix_ms, moment[key]]);
    const marks = now.margin ? [{ name: 'qualified', value: now.margin.qualified_bytes_per_second / 1e6 }] : [];
    if (now.margin?.failed_above) marks.push({ name: 'failed', value: now.margin.failed_above.bytes_per_second / 1e6 });
    lines.draw([points('received'), points('written'), points('durable')], marks);
  }
  const { flow, pool, margin } = now;
  const used = pool.used_bytes / Math.max(1, pool.bytes);
  put(section('flow-facts'),
    h('h3', {}, `memory: ${bytes(pool.used_bytes)} of ${bytes(pool.bytes)} in use`), bar(used, toneAbove(used, 0.5, 0.9)),
    h('p', { className: 'note' }, `peak ${percent(pool.used_bytes_max / Math.max(1, pool.bytes))}; sources waited ${span(pool.wait_seconds)} for memory`),
    margin && h('h3', {}, `${percent(margin.used)} of the qualified rate of ${rate(margin.qualified_bytes_per_second)}`),
    margin && bar(margin.used, marginTone(margin)),
    margin && h('p', { className: 'note' }, above(margin.failed_above)),
    margin && h('p', { className: 'note' }, `${margin.result}${margin.differs.length ? `; differs: ${margin.differs.join(', ')}` : ''}`),
    !margin && section('search').hidden && h('p', { className: 'note' }, 'no qualified rate for this machine with these volumes: run keepup qualify'),
    flow.drained && h('p', {}, `drained: ${count(flow.drained.events)} events, ${perSecond(flow.drained.events_per_second)}`));
}

export function volumes(now) {
  const head = [
    { name: 'volume', className: 'path' }, { name: 'written', figures: true }, { name: 'queue', figures: true },
    { name: 'at full depth', figures: true }, { name: 'oldest write', figures: true }, { name: 'longest write', figures: true },
    { name: 'longest flush', figures: true }, { name: 'free', figures: true }, { name: 'full in', figures: true }, { name: 'state' },
  ];
  const state = (volume) => {
    if (volume.failure) return h('span', { className: 'bad-text' }, `FAILED: ${volume.failure}`);
    if (volume.stalled_seconds > 1) return h('span', { className: 'doubtful-text' }, 'not answering');
    return h('span', { className: 'good-text' }, volume.rests ? `ok, out of rotation ${volume.rests} times` : 'ok');
  };
  fill('volumes', table(head, now.volumes.map((volume) => [
    volume.path, rate(volume.written_bytes_per_second), bytes(volume.queue_bytes), percent(volume.full), span(volume.stalled_seconds),
    span(volume.write_seconds_max), span(volume.flush_seconds_max), bytes(volume.free_bytes), span(volume.full_in_seconds), state(volume),
  ]), 'stack'));
}

export function ledger(now) {
  const { flow } = now;
  const row = (name, sum, speed) => [name, count(sum.events), bytes(sum.bytes), speed];
  const rows = [
    row('received', flow.received, rate(flow.received_bytes_per_second)), row('written', flow.written, rate(flow.written_bytes_per_second)),
    row('durable', flow.durable, rate(flow.durable_bytes_per_second)),
    now.reduction && ['reduced: input', count(now.reduction.events), bytes(now.reduction.input_bytes), rate(now.reduction.input_bytes_per_second)],
    now.reduction && ['reduced: output', count(now.reduction.events), bytes(now.reduction.output_bytes), rate(now.reduction.output_bytes_per_second)],
    flow.drained && ['drained', count(flow.drained.events), '–', perSecond(flow.drained.events_per_second)],
    ...Object.entries(flow.missing).map(([cause, events]) => [h('span', { className: 'bad-text' }, `missing: ${cause}`), count(events), '–', '']),
    ...flow.rejected.map((row) => [h('span', { className: row.foreign ? '' : 'bad-text' }, `rejected: ${row.text}`), `${count(row.count)} ${row.unit}${row.count === 1 ? '' : 's'}`, '–', '']),
  ].filter(Boolean);
  const head = [{ name: 'events' }, { name: 'number', figures: true }, { name: 'payload', figures: true }, { name: 'rate', figures: true }];
  fill('ledger', table(head, rows));
}

export function machine(now) {
  const cores = now.cores.map((core) => h('div', {}, h('span', {}, `core ${core.core}`), h('b', {}, percent(core.busy)), bar(core.busy, toneAbove(core.busy, 0.8, 0.95))));
  const own = now.process_cores === null ? '' : `recorder process: ${percent(now.process_cores)} of one core; `;
  fill('machine', h('div', { className: 'cores' }, cores),
    h('p', { className: 'note' }, `${own}intake thread busy ${percent(now.flow.intake_busy)} of the time`),
    now.reduction && h('p', { className: 'note' }, `reducer threads busy ${now.reduction.busy.map(percent).join(', ')} of the time, ${bytes(now.reduction.waiting_bytes)} waiting`));
}
