// Browser of a recording's stored events, one stream and one event at a time.
import { count, h } from './draw.js';
import { Picture } from './picture.js';
import { PREVIEW } from './view.js';

// Shows the stream `id` of `recording`, described by `info`; `fetchEvent(path)` loads an event from the server.
export function browse(recording, id, info, fetchEvent) {
  const [first, last] = [info.first_sequence, info.last_sequence];
  const picture = new Picture('');
  let shown = null;
  let turn = Promise.resolve();

  const ask = (from) => fetchEvent(`/recordings/${recording}/event?stream=${id}&from=${from}&preview=${PREVIEW}`);
  // Sequential: each step starts from the event of the previous one.
  const show = (find) => {
    turn = turn.then(async () => {
      const { head, payload } = await find();
      shown = head.sequence;
      number.value = slider.value = shown;
      picture.show(head, payload);
    }).catch((error) => { picture.note.textContent = error.message; });
  };
  // Over missing events, the step doubles until an event is found.
  const before = async () => {
    for (let step = 1; ; step *= 2) {
      const from = Math.max(first, shown - step);
      const found = await ask(from);
      if (found.head.sequence < shown || from === first) return found;
    }
  };
  const clamped = (value) => Math.min(last, Math.max(first, Math.round(Number(value)) || first));
  const button = (text, find) => h('button', { type: 'button', className: 'small', onclick: () => show(find) }, text);
  const number = h('input', { type: 'number', min: first, max: last, ariaLabel: 'event', onchange: () => show(() => ask(clamped(number.value))) });
  const slider = h('input', { type: 'range', className: 'grow', min: first, max: last, ariaLabel: 'position in the stream', onchange: () => show(() => ask(slider.value)) });
  number.style.width = '9em';
  const row = h('div', { className: 'row' }, button('first', () => ask(first)), button('before', before), number,
    button('next', () => ask(Math.min(last, shown + 1))), button('last', () => ask(last)), slider, picture.controls);
  show(() => ask(first));
  return h('div', { className: 'browse' }, h('h3', {}, `stream ${id}: ${info.name}, events ${count(first)} to ${count(last)}`), row, picture.element);
}
