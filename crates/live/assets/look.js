// Stored events of one stream of a recording, one at a time.
import { count, h } from './draw.js';
import { Picture } from './picture.js';
import { PREVIEW } from './view.js';

// What is in `recording` of the stream `id`, of which `info` tells; `fetchEvent(path)` asks the server.
export function look(recording, id, info, fetchEvent) {
  const [first, last] = [info.first_sequence, info.last_sequence];
  const picture = new Picture('');
  let shown = null;
  let turn = Promise.resolve();

  const ask = (from) => fetchEvent(`/recordings/${recording}/event?stream=${id}&from=${from}&preview=${PREVIEW}`);
  // One after the other: each step begins where the one before has led.
  const show = (find) => {
    turn = turn.then(async () => {
      const { head, payload } = await find();
      shown = head.sequence;
      number.value = slider.value = shown;
      picture.show(head, payload);
    }).catch((error) => { picture.note.textContent = error.message; });
  };
  // Where events are missing, steps become longer until there is one.
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
  const slider = h('input', { type: 'range', className: 'grow', min: first, max: last, ariaLabel: 'place in the stream', onchange: () => show(() => ask(slider.value)) });
  number.style.width = '9em';
  const row = h('div', { className: 'row' }, button('first', () => ask(first)), button('before', before), number,
    button('next', () => ask(Math.min(last, shown + 1))), button('last', () => ask(last)), slider, picture.controls);
  show(() => ask(first));
  return h('div', { className: 'look' }, h('h3', {}, `stream ${id}: ${info.name}, events ${count(first)} to ${count(last)}`), row, picture.element);
}
