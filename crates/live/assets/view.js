// Latest event of one stream of the run, from the event tap.
import { count, h } from './draw.js';
import { Picture } from './picture.js';

const PER_SECOND = 4;
export const PREVIEW = 640;

export class View {
  constructor(card) {
    this.card = card; this.socket = null; this.head = null;
    this.picture = new Picture('copies of events; the recorder does not wait for this page');
    this.button = h('button', { type: 'button', className: 'small', onclick: () => (this.socket ? this.close() : this.open()) }, 'show its events');
    this.element = h('div', {}, h('div', { className: 'row' }, this.button, this.picture.controls), this.picture.element);
  }

  open() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/tap?stream=${this.card.id}&rate=${PER_SECOND}&preview=${PREVIEW}`);
    socket.binaryType = 'arraybuffer';
    socket.onmessage = (message) => this.take(message.data);
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.close();
      this.picture.note.textContent = event.reason || 'the connection was closed';
    };
    this.socket = socket;
    this.button.textContent = 'stop';
    this.picture.note.textContent = 'waiting for an event';
  }

  close() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.button.textContent = 'show its events';
  }

  // A text describes the payload that follows, or reports the numbers of sent and missed events.
  take(data) {
    if (typeof data === 'string') { this.head = JSON.parse(data); return; }
    this.picture.show(this.head, data, `; ${count(this.head.missed)} copies missed because this page or the tap was too slow`);
  }
}
