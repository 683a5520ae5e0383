// Rendering of an event by its type and shape: an image, or a waveform with its spectrum.
import { colour, count, h } from './draw.js';

const ARRAYS = {
  u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, i8: Int8Array, i16: Int16Array, i32: Int32Array,
  i64: BigInt64Array, f32: Float32Array, f64: Float64Array,
};
// Colour maps by a few points each: grey, similar to viridis, and heat.
const MAPS = {
  grey: [[0, 0, 0], [255, 255, 255]],
  green: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  heat: [[0, 0, 0], [120, 0, 20], [220, 70, 0], [255, 190, 30], [255, 255, 230]],
};

// Formats a time in ns since 1970; sources may send any number.
const when = (ns) => (ns < 8.64e21 ? new Date(ns / 1e6).toISOString().replace('T', ' ').replace('Z', ' UTC') : `${ns} ns`);

export class Picture {
  constructor(caption) {
    this.event = null; this.map = 'green'; this.log = false; this.cut = 99.8;
    this.note = h('p', { className: 'note' }, caption);
    this.canvas = h('canvas', { className: 'picture', hidden: true });
    this.spectrum = h('canvas', { className: 'spectrum', hidden: true });
    this.controls = h('div', { className: 'row', hidden: true },
      h('label', {}, h('input', { type: 'checkbox', onchange: (e) => { this.log = e.target.checked; this.draw(); } }), 'logarithmic'),
      this.select('map', Object.keys(MAPS), (value) => { this.map = value; }),
      this.select('contrast', ['100', '99.8', '99', '95'], (value) => { this.cut = Number(value); }, '99.8'));
    this.element = h('div', {}, this.canvas, this.spectrum, this.note);
  }

  select(name, values, set, chosen) {
    const select = h('select', { ariaLabel: name, onchange: (e) => { set(e.target.value); this.draw(); } },
      values.map((value) => h('option', { value, selected: value === (chosen ?? this[name]) }, name === 'contrast' ? `${value} %` : value)));
    select.style.width = 'auto';
    return select;
  }

  // `head` is the event's description, `payload` its bytes, `more` a text appended to the caption.
  show(head, payload, more = '') {
    this.event = { head, payload, more };
    this.draw();
  }

  draw() {
    if (!this.event) return;
    const { head, payload, more } = this.event;
    const is = head.shape.length ? head.shape.join(' × ') : `${count(head.bytes)} bytes`;
    const title = `event ${count(head.sequence)} of ${when(head.timestamp_ns)}: ${is}`;
    if (head.compression) {
      this.canvas.hidden = this.spectrum.hidden = this.controls.hidden = true;
      this.note.textContent = `${title}, ${count(head.bytes)} bytes compressed by ${head.compression}, which this page cannot show${more}`;
      return;
    }
    const isArray = head.shape.length > 0;
    const Kind = ARRAYS[head.element] ?? Uint8Array;
    let values = isArray ? new Kind(payload) : new Uint8Array(payload);
    if (values instanceof BigUint64Array || values instanceof BigInt64Array) values = Float64Array.from(values, Number);
    const shape = isArray ? head.shape : [values.length];
    const rows = shape.length > 1 ? shape[shape.length - 2] : 1;
    const range = rows > 1 ? this.image(values, rows, shape[shape.length - 1]) : this.wave(values, isArray);
    this.canvas.hidden = false;
    this.controls.hidden = rows === 1 && !isArray;
    const from = payload.byteLength < head.bytes ? `, thinned from ${head.whole_shape.join(' × ')}` : '';
    this.note.textContent = `${title}${from}, ${range}${more}`;
  }

  // Brightness limits: two percentiles of the values.
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
