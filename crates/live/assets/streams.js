// Overview of all streams, and details of one.
import { bytes, colour, count, fill, h, many, perSecond, percent, rate, section, span } from './draw.js';
import { View } from './view.js';

const SILENT_SECONDS = 2;
addEventListener('resize', () => { if (latest && section('cells')) streams(latest); });
document.addEventListener('themechange', () => { if (latest && section('cells')) { build(); streams(latest); } });
let cards = [];
let sorted = 'trouble';
let chosen = null;
let order = [];
let grid = null;
let latest = null;
let view = null;

export function setCards(list) {
  cards = list;
  if (chosen !== null && !cards.some((card) => card.id === chosen)) choose(null);
}

// Severity of a stream's problem: 3 events missing, 2 silent or not connected, 1 slow, 0 none. A stream that has ended
// is silent without a problem.
function trouble(streams, at, median) {
  if (streams.missing[at] > 0) return 3;
  if (streams.ended[at]) return 0;
  if (!streams.connected[at] || streams.silent[at] < 0 || streams.silent[at] > SILENT_SECONDS * 10) return 2;
  return streams.rate[at] < 0.5 * median ? 1 : 0;
}

const middle = (values) => (values.length ? [...values].sort((a, b) => a - b)[values.length >> 1] : 0);

export function streams(now) {
  latest = now;
  if (!cards.length || now.streams.rate.length !== cards.length) { if (!cards.length) fill('streams'); return; }
  if (!section('cells')) build();
  const median = middle(now.streams.rate);
  const troubles = cards.map((_, at) => trouble(now.streams, at, median));
  order = cards.map((_, at) => at);
  if (sorted === 'trouble') order.sort((a, b) => troubles[b] - troubles[a] || now.streams.missing[b] - now.streams.missing[a] || a - b);
  if (!document.hidden) paint(now.streams, troubles);
  const bad = troubles.filter((one) => one >= 2).length;
  section('streams-sum').textContent = `${many(cards.length, 'stream')}, ${bad ? `${count(bad)} with problems` : 'no problems'}, median ${rate(median)}`;
  worst(now.streams, troubles);
  detail();
}

function build() {
  const swatch = (name, text) => { const i = h('i'); i.style.background = colour(name); return h('span', {}, i, text); };
  const button = (key, text) => h('button', {
    type: 'button', className: 'small', ariaPressed: String(sorted === key),
    onclick: () => { sorted = key; build(); if (latest) streams(latest); },
  }, text);
  fill('streams',
    h('div', { className: 'row' }, h('span', { id: 'streams-sum', className: 'grow' }), button('trouble', 'by severity'), button('number', 'by number')),
    h('canvas', { id: 'cells', role: 'img', ariaLabel: 'one cell per stream', onclick: pick }),
    h('div', { className: 'legend' }, swatch('--mid', 'normal rate, or ended'), swatch('--c5', 'below half the median rate'), swatch('--line', 'silent or not connected'), swatch('--bad', 'events missing')),
    h('div', { id: 'worst', className: 'row' }), h('div', { id: 'detail' }));
  detail(true);
}

function paint(streams, troubles) {
  const canvas = section('cells');
  const width = canvas.clientWidth;
  if (!width) return;
  const size = Math.max(4, Math.min(22, Math.floor(Math.sqrt((width * 150) / order.length))));
  const columns = Math.max(1, Math.floor(width / size));
  const rows = Math.ceil(order.length / columns);
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale; canvas.height = rows * size * scale; canvas.style.height = `${rows * size}px`;
  grid = { size, columns };
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  const tones = [colour('--mid'), colour('--c5'), colour('--line'), colour('--bad')];
  const gap = size > 6 ? 1.5 : 0.5;
  order.forEach((at, place) => {
    pen.fillStyle = tones[troubles[at]];
    pen.fillRect((place % columns) * size, Math.floor(place / columns) * size, size - gap, size - gap);
    if (cards[at].id === chosen) {
      pen.strokeStyle = colour('--text'); pen.lineWidth = 2;
      pen.strokeRect((place % columns) * size + 1, Math.floor(place / columns) * size + 1, size - gap - 2, size - gap - 2);
    }
  });
}

function pick(event) {
  if (!grid) return;
  const box = event.target.getBoundingClientRect();
  const place = Math.floor((event.clientY - box.top) / grid.size) * grid.columns + Math.floor((event.clientX - box.left) / grid.size);
  if (order[place] !== undefined) choose(cards[order[place]].id);
}

function choose(id) {
  view?.close(); view = null;
  chosen = id;
  if (section('detail')) detail(true);
  if (latest && section('cells')) streams(latest);
}

// The streams with the most severe problems, for keyboards and small screens.
function worst(streams, troubles) {
  const labels = { 3: (at) => `${count(streams.missing[at])} missing`, 2: (at) => (streams.connected[at] ? 'silent' : 'not connected'), 1: () => 'slow', 0: () => 'ended' };
  const first = order.slice(0, cards.length > 8 ? 6 : cards.length);
  const place = section('worst');
  // A button is replaced only for another stream: otherwise it might vanish while it is pressed.
  const shown = first.map((at) => cards[at].id).join();
  if (place.dataset.shown !== shown) {
    place.dataset.shown = shown;
    place.replaceChildren(...first.map((at) => h('button', { type: 'button', className: 'small', onclick: () => choose(cards[at].id) })));
  }
  first.forEach((at, n) => {
    const button = place.children[n];
    button.ariaPressed = String(cards[at].id === chosen);
    button.textContent = `${cards[at].id} ${cards[at].name}${troubles[at] || streams.ended[at] ? `: ${labels[troubles[at]](at)}` : ''}`;
  });
}

function detail(rebuild = false) {
  const place = section('detail');
  const at = cards.findIndex((card) => card.id === chosen);
  if (at < 0 || !latest || latest.streams.rate.length !== cards.length) { place.replaceChildren(); return; }
  if (rebuild || !section('stream-facts')) {
    view?.close();
    view = new View(cards[at]);
    place.replaceChildren(h('h3', {}, `stream ${cards[at].id}: ${cards[at].name}`),
      h('div', { className: 'beside' }, h('dl', { id: 'stream-facts', className: 'facts' }), view.element));
  }
  const card = cards[at];
  const s = latest.streams;
  const shape = card.shape.length ? `${card.element} [${card.shape.join(' × ')}]` : 'opaque bytes';
  const facts = [
    ['type', card.compression ? `${shape}, ${card.compression}` : shape], ['source', s.ended[at] ? 'ended' : s.connected[at] ? 'connected' : 'not connected'],
    ['rate', `${rate(s.rate[at])}${s.events[at] ? `, ${perSecond(s.rate[at] / (s.bytes[at] / s.events[at] || 1))}` : ''}`],
    ['received', `${count(s.events[at])} events, ${bytes(s.bytes[at])}`],
    ['durable', `${count(s.durable_events[at])} events, ${percent(s.durable_events[at] / Math.max(1, s.events[at]))}`],
    ['missing', `${count(s.missing[at])} events`], ['last event', s.silent[at] < 0 ? 'never' : s.silent[at] < 10 ? 'now' : `${span(s.silent[at] / 10)} ago`],
  ];
  section('stream-facts').replaceChildren(...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}
