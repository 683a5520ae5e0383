// The latest event of one stream: an image or a waveform with its spectrum, by its type and shape.
import { colour, count, h } from './draw.js';

const PER_SECOND = 4;
const PREVIEW = 640;
const ARRAYS = {
  u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, i8: Int8Array, i16: Int16Array, i32: Int32Array,
  i64: BigInt64Array, f32: Float32Array, f64: Float64Array,
};
// Colour maps by a few points each: grey, one in the manner of viridis, one in the manner of heat.
const MAPS = {
  grey: [[0, 0, 0], [255, 255, 255]],
  green: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  heat: [[0, 0, 0], [120, 0, 20], [220, 70, 0], [255, 190, 30], [255, 255, 230]],
};

export class View {
  constructor(card) {
    this.card = card; this.socket = null; this.event = null; this.map = 'green'; this.log = false; this.cut = 99.8;
    this.note = h('p', { className: 'note' }, 'copies of events for this page; the recorder never waits for it');
    this.canvas = h('canvas', { id: 'picture', hidden: true });
    this.spectrum = h('canvas', { className: 'spectrum', hidden: true });
    this.spectrum.style.width = '100%';
    this.controls = h('div', { className: 'row', hidden: true },
      h('label', {}, h('input', { type: 'checkbox', onchange: (e) => { this.log = e.target.checked; this.draw(); } }), 'logarithmic'),
      this.select('map', Object.keys(MAPS), (value) => { this.map = value; }),
      this.select('contrast', ['100', '99.8', '99', '95'], (value) => { this.cut = Number(value); }, '99.8'));
    this.button = h('button', { type: 'button', className: 'small', onclick: () => (this.socket ? this.close() : this.open()) }, 'show its events');
    this.element = h('div', {}, h('div', { className: 'row' }, this.button, this.controls), this.canvas, this.spectrum, this.note);
  }

  select(name, values, set, chosen) {
    const select = h('select', { ariaLabel: name, onchange: (e) => { set(e.target.value); this.draw(); } },
      values.map((value) => h('option', { value, selected: value === (chosen ?? this[name]) }, name === 'contrast' ? `${value} %` : value)));
    select.style.width = 'auto';
    return select;
  }

  open() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/tap?stream=${this.card.id}&rate=${PER_SECOND}&preview=${PREVIEW}`);
    socket.binaryType = 'arraybuffer';
    socket.onmessage = (message) => { if (typeof message.data !== 'string') this.take(message.data); };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.close();
      this.note.textContent = event.reason || 'the connection was closed';
    };
    this.socket = socket;
    this.button.textContent = 'stop';
    this.note.textContent = 'waiting for an event';
  }

  close() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.button.textContent = 'show its events';
  }

  take(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    this.event = { head, buffer, at: 4 + length };
    this.draw();
  }

  draw() {
    if (!this.event) return;
    const { head, buffer, at } = this.event;
    const Kind = ARRAYS[head.element] ?? Uint8Array;
    const plain = !head.compression && head.shape.length > 0;
    let values = plain ? new Kind(buffer, at) : new Uint8Array(buffer, at);
    if (values instanceof BigUint64Array || values instanceof BigInt64Array) values = Float64Array.from(values, Number);
    const shape = plain ? head.shape : [values.length];
    const rows = shape.length > 1 ? shape[shape.length - 2] : 1;
    const columns = shape[shape.length - 1];
    const range = rows > 1 ? this.image(values, rows, columns) : this.wave(values, plain);
    this.canvas.hidden = false;
    this.controls.hidden = rows === 1 && !plain;
    const from = head.whole_shape && head.whole_shape.join() !== head.shape.join() ? `, thinned from ${head.whole_shape.join(' × ')}` : '';
    this.note.textContent = `event ${count(head.sequence)}: ${head.shape.length ? head.shape.join(' × ') : `${count(head.bytes)} bytes`}${from}, ${range}; `
      + `${count(head.missed)} copies not sent because this page or the tap was behind`;
  }

  // Brightness between two percentiles of what is there.
  limits(values) {
    const some = values.length > 20000 ? values.filter((_, at) => at % Math.ceil(values.length / 20000) === 0) : values.slice();
    some.sort();
    const cut = (100 - this.cut) / 200;
    const low = some[Math.floor(cut * (some.length - 1))];
    const high = some[Math.ceil((1 - cut) * (some.length - 1))];
    return [Number(low), Number(high)];
  }

  image(values, rows, columns) {
    const [low, high] = this.limits(values);
    const shade = this.log ? (v) => Math.log1p(Math.max(0, v - low)) / Math.log1p(Math.max(1e-12, high - low)) : (v) => (v - low) / Math.max(1e-12, high - low);
    const stops = MAPS[this.map];
    const palette = Array.from({ length: 256 }, (_, at) => {
      const place = (at / 255) * (stops.length - 1);
      const first = Math.min(Math.floor(place), stops.length - 2);
      return stops[first].map((one, rgb) => Math.round(one + (stops[first + 1][rgb] - one) * (place - first)));
    });
    this.canvas.width = columns; this.canvas.height = rows;
    this.canvas.style.height = '';
    const pen = this.canvas.getContext('2d');
    const picture = pen.createImageData(columns, rows);
    for (let at = 0; at < rows * columns; at += 1) {
      const share = shade(Number(values[at]));
      const [red, green, blue] = palette[share <= 0 || Number.isNaN(share) ? 0 : share >= 1 ? 255 : Math.round(share * 255)];
      picture.data.set([red, green, blue, 255], at * 4);
    }
    pen.putImageData(picture, 0, 0);
    this.spectrum.hidden = true;
    return `shown from ${Number(low.toPrecision(4))} to ${Number(high.toPrecision(4))}`;
  }

  wave(values, isSignal) {
    const shown = Array.from(values.slice(0, 4096), Number);
    this.line(this.canvas, shown, '--c1', false);
    this.spectrum.hidden = !isSignal;
    if (isSignal) this.line(this.spectrum, power(shown), '--c2', true);
    const low = shown.reduce((a, b) => Math.min(a, b), Infinity);
    const high = shown.reduce((a, b) => Math.max(a, b), -Infinity);
    return `from ${Number(low.toPrecision(4))} to ${Number(high.toPrecision(4))}${isSignal ? ', its power spectrum below, logarithmic' : ''}`;
  }

  line(canvas, values, tone, logarithmic) {
    const points = logarithmic || this.log ? values.map((v) => Math.log10(Math.max(v, 1e-12))) : values;
    const low = points.reduce((a, b) => Math.min(a, b), Infinity);
    const high = points.reduce((a, b) => Math.max(a, b), -Infinity);
    canvas.width = 640; canvas.height = 150; canvas.style.height = '150px';
    const pen = canvas.getContext('2d');
    pen.strokeStyle = colour(tone); pen.lineWidth = 1.2;
    pen.beginPath();
    points.forEach((value, at) => {
      const x = (at / Math.max(1, points.length - 1)) * 638 + 1;
      const y = 148 - ((value - low) / Math.max(1e-12, high - low)) * 146;
      if (at === 0) pen.moveTo(x, y); else pen.lineTo(x, y);
    });
    pen.stroke();
  }
}

// Power of the frequencies of a real signal, up to half the sampling rate: radix 2, the signal cut to a power of two.
export function power(signal) {
  const n = 2 ** Math.floor(Math.log2(Math.max(2, signal.length)));
  const mean = signal.slice(0, n).reduce((a, b) => a + b, 0) / n;
  const re = new Float64Array(n);
  const im = new Float64Array(n);
  const bits = Math.log2(n);
  for (let at = 0; at < n; at += 1) {
    let turned = 0;
    for (let bit = 0; bit < bits; bit += 1) turned |= ((at >> bit) & 1) << (bits - 1 - bit);
    re[turned] = (signal[at] - mean) * (0.5 - 0.5 * Math.cos((2 * Math.PI * at) / n));
  }
  for (let size = 2; size <= n; size *= 2) {
    for (let start = 0; start < n; start += size) {
      for (let k = 0; k < size / 2; k += 1) {
        const angle = (-2 * Math.PI * k) / size;
        const [a, b] = [start + k, start + k + size / 2];
        const tr = re[b] * Math.cos(angle) - im[b] * Math.sin(angle);
        const ti = re[b] * Math.sin(angle) + im[b] * Math.cos(angle);
        [re[b], im[b]] = [re[a] - tr, im[a] - ti];
        [re[a], im[a]] = [re[a] + tr, im[a] + ti];
      }
    }
  }
  return Array.from({ length: n / 2 }, (_, at) => re[at] * re[at] + im[at] * im[at]);
}
