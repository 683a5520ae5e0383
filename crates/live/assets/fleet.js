// A recording on several hosts: headline, rates, hosts, and the ledger with the moves of streams.
import { Lines, bytes, clock, colour, count, fill, h, many, perSecond, percent, put, rate, section, span, table, tile } from './draw.js';
import { past, record } from './flow.js';

// One sparkline has at most this many points.
const POINTS = 120;
let lines = null;
let shown = null; // The host whose rates the chart shows; null: all.
let latest = null;
document.addEventListener('themechange', () => { if (latest) hosts(latest); });

const STATES = {
  recording: ['recording', 'good-text'], reserve: ['in reserve', ''], preparing: ['preparing', ''], ending: ['ending', 'doubtful-text'],
  ended: ['ended', 'good-text'], lost: ['LOST', 'bad-text'], failed: ['FAILED', 'bad-text'], missing: ['MISSING', 'bad-text'],
};

// Shows the figures of all hosts.
export function fleet(now) {
  latest = now;
  record({
    t_unix_ms: now.t_unix_ns / 1e6, received: now.flow.received_bytes_per_second / 1e6, durable: now.flow.durable_bytes_per_second / 1e6,
    hosts: now.hosts.map(({ flow }) => [flow.received_bytes_per_second / 1e6, flow.durable_bytes_per_second / 1e6]),
  });
  section('flow').hidden = false;
  rates(now);
  hosts(now);
  ledger(now);
}

// Tiles of the headline.
export function figures(now) {
  const { flow } = now;
  const counted = (state) => now.hosts.filter((host) => host.state === state).length;
  const gone = counted('lost') + counted('failed') + counted('missing');
  return h('div', { className: 'tiles' },
    tile('in', rate(flow.received_bytes_per_second), `${perSecond(flow.received_events_per_second)}, ${count(flow.connected_streams)} streams connected`),
    tile('durable', rate(flow.durable_bytes_per_second), `${bytes(flow.durable.bytes)} in total`),
    tile('hosts recording', count(counted('recording')), `${count(counted('reserve'))} in reserve${gone ? `, ${count(gone)} lost or failed` : ''}`),
    tile('missing', count(flow.missing_events), flow.missing_events ? 'events' : 'nothing'));
}

// Whether a host has failed, or a volume of one.
export const weakened = (now) => now.failures.length > 0;

function rates(now) {
  const place = section('flow');
  if (!place.querySelector('.plot')) {
    fill('flow', h('div', { id: 'flow-hosts', className: 'row' }), h('div', { className: 'plot' }));
    lines = new Lines(place.querySelector('.plot'), 'MB/s', [{ name: 'in', colour: '--c1' }, { name: 'durable', colour: '--c2' }]);
  }
  choices(now);
  if (document.hidden) return;
  const points = (at) => past.map((moment) => [moment.t_unix_ms, shown === null ? [moment.received, moment.durable][at] : (moment.hosts?.[shown]?.[at] ?? null)]);
  lines.draw([points(0), points(1)]);
}

// A choice of the chart; a list, because a fleet may have many hosts.
function choices(now) {
  const place = section('flow-hosts');
  if (place.dataset.hosts === String(now.hosts.length)) return;
  place.dataset.hosts = String(now.hosts.length);
  const select = h('select', { id: 'flow-of', onchange: () => { shown = select.value === '' ? null : Number(select.value); rates(latest); } },
    h('option', { value: '' }, 'all hosts'), now.hosts.map((host, at) => h('option', { value: String(at), selected: shown === at }, host.name)));
  select.style.width = 'auto';
  place.replaceChildren(h('label', { htmlFor: 'flow-of' }, 'rates of'), select);
}

const SVG = 'http://www.w3.org/2000/svg';

// Received rate of a host in the last ten minutes, relative to the highest rate of any host.
function spark(at, highest) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${POINTS} 20`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('class', 'spark');
  svg.setAttribute('aria-hidden', 'true');
  const step = Math.ceil(past.length / POINTS);
  const kept = past.filter((_, index) => (past.length - 1 - index) % step === 0);
  // The history before the page was opened has only the first hosts: nothing is drawn where a rate is unknown.
  const points = kept.map((moment, index) => [POINTS - kept.length + index, moment.hosts?.[at]?.[0]]).filter(([, received]) => received !== undefined)
    .map(([x, received]) => `${x},${(19 - 18 * (received / highest)).toFixed(1)}`);
  const line = document.createElementNS(SVG, 'polyline');
  line.setAttribute('points', points.join(' '));
  line.setAttribute('fill', 'none');
  line.setAttribute('stroke', colour('--c1'));
  line.setAttribute('vector-effect', 'non-scaling-stroke');
  svg.append(line);
  return svg;
}

// A figure, and below it what belongs to it.
const over = (value, below, tone = '') => h('span', { className: tone }, h('span', { className: 'whole' }, value), below && h('small', {}, below));
const disk = (volume) => h('span', { title: volume.path }, volume.path.split('/').slice(0, -1).join('/') || volume.path);

// The volume that has needed longest for a write or flush, or one that failed.
function slowest(host) {
  const failed = host.volumes.filter((volume) => volume.failed);
  if (failed.length) return over(`${count(failed.length)} FAILED`, disk(failed[0]), 'bad-text');
  const [waiting] = [...host.volumes].sort((a, b) => b.stalled_seconds - a.stalled_seconds);
  if (waiting?.stalled_seconds > 1) return over(`no answer for ${span(waiting.stalled_seconds)}`, disk(waiting), 'doubtful-text');
  const [longest] = [...host.volumes].sort((a, b) => b.longest_seconds - a.longest_seconds);
  return longest ? over(span(longest.longest_seconds), host.volumes.length > 1 && disk(longest)) : '–';
}

function leastFree(host) {
  const [first] = host.volumes.filter((volume) => volume.free_bytes !== null).sort((a, b) => a.free_bytes - b.free_bytes);
  return first ? over(bytes(first.free_bytes), host.volumes.length > 1 && disk(first)) : '–';
}

const milliseconds = (seconds) => `${seconds < 0 ? '−' : '+'}${(Math.abs(seconds) * 1000).toFixed(2)}`;

const HEAD = [
  { name: 'host', className: 'path' }, { name: 'state' }, { name: 'in', figures: true }, { name: 'durable', figures: true }, { name: 'last 10 min' },
  { name: 'events', figures: true }, { name: 'streams', figures: true }, { name: 'missing', figures: true }, { name: 'pool', figures: true },
  { name: 'bridges', figures: true }, { name: 'longest write', figures: true }, { name: 'least free', figures: true },
  { name: 'clock (ms)', figures: true }, { name: 'heartbeat', figures: true },
];

function hosts(now) {
  const highest = Math.max(1e-9, ...past.flatMap((moment) => (moment.hosts ?? []).map(([received]) => received)));
  const row = (host, at) => {
    const [word, tone] = host.state === 'missing' && !host.why ? ['joining', ''] : STATES[host.state];
    const { flow, pool } = host;
    const isSilent = host.heartbeat_age_seconds > 1 && ['recording', 'reserve', 'ending'].includes(host.state);
    return [
      over(h('b', {}, host.name), host.role),
      h('span', { className: tone, title: host.why ?? undefined }, word), rate(flow.received_bytes_per_second), rate(flow.durable_bytes_per_second), spark(at, highest),
      count(flow.received.events), over(count(flow.connected_streams), flow.ended_streams > 0 && `${count(flow.ended_streams)} ended`),
      flow.missing_events ? h('span', { className: 'bad-text' }, count(flow.missing_events)) : '0',
      pool ? percent(pool.used_bytes / Math.max(1, pool.bytes)) : '–', pool ? span(pool.room_seconds) : '–', slowest(host), leastFree(host),
      host.clock_offset_seconds === null ? '–' : over(milliseconds(host.clock_offset_seconds), `±${(host.clock_error_seconds * 1000).toFixed(2)}`),
      host.heartbeat_age_seconds === null ? '–' : h('span', { className: isSilent ? 'doubtful-text' : '' }, span(host.heartbeat_age_seconds)),
    ];
  };
  fill('hosts', table(HEAD, now.hosts.map(row), 'stack dense'));
}

function ledger(now) {
  const { flow } = now;
  const rows = [
    ['received', count(flow.received.events), bytes(flow.received.bytes), rate(flow.received_bytes_per_second)],
    ['durable', count(flow.durable.events), bytes(flow.durable.bytes), rate(flow.durable_bytes_per_second)],
    ...Object.entries(flow.missing).map(([cause, events]) => [h('span', { className: 'bad-text' }, `missing: ${cause}`), count(events), '–', '']),
  ];
  for (const [kind, tone] of [['rejected', 'bad-text'], ['foreign', '']]) {
    const named = kind === 'foreign' ? 'rejected, of strangers' : 'rejected';
    rows.push(...Object.entries(flow[kind] ?? {}).map(([reason, number]) => [h('span', { className: tone }, `${named}: ${reason}`), count(number), '–', '']));
  }
  const head = [{ name: 'events' }, { name: 'number', figures: true }, { name: 'payload', figures: true }, { name: 'rate', figures: true }];
  const moved = (move) => h('li', {}, `${clock(move.at_unix_ns / 1e6)}: the streams of ${move.from} moved to ${move.to ?? 'the other recorders'}`);
  fill('ledger', table(head, rows), now.moves.length > 0 && h('h3', {}, 'moves'), now.moves.length > 0 && h('ul', { id: 'moves', className: 'plain' }, now.moves.map(moved)));
}
