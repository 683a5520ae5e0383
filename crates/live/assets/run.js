// Run control: available commands, and the settings of the next run.
import { bytes, fill, h, section } from './draw.js';

let status = null;
let shownRevision = null;
let send = null;

// `command` sends a command and returns the error, if any.
export function connect(command) { send = command; }

export function run(now) {
  status = now;
  if (!now) { fill('run'); return; }
  if (!section('run-buttons')) build();
  buttons();
  const form = section('settings');
  form.closest('details').hidden = !now.controlled;
  if (shownRevision === null && now.state === 'idle') form.closest('details').open = true;
  // Keeps settings that are being edited.
  if (shownRevision !== now.revision && !form.contains(document.activeElement)) show(now);
}

function build() {
  fill('run', h('div', { id: 'run-buttons', className: 'row' }), h('p', { id: 'run-error', className: 'error', role: 'alert' }),
    h('details', { hidden: true }, h('summary', {}, 'settings of the next run'), h('form', { id: 'settings', className: 'settings', onsubmit: (e) => { e.preventDefault(); command('configure'); } })));
}

const COMMANDS = [['configure', 'Configure', ''], ['arm', 'Arm', ''], ['start', 'Start', 'main'], ['stop', 'Stop', 'stop'], ['reset', 'Reset', '']];

// Rebuilt only after a change: a button that is replaced while it is pressed gets no click.
function buttons() {
  const key = JSON.stringify([status.controlled, status.commands]);
  if (section('run-buttons').dataset.key === key) return;
  section('run-buttons').dataset.key = key;
  const shown = COMMANDS.filter(([name]) => status.controlled || name === 'stop');
  section('run-buttons').replaceChildren(...shown.map(([name, text, className]) => h('button', {
    type: 'button', id: `do-${name}`, className, disabled: !status.commands.includes(name),
    onclick: () => (name === 'stop' ? confirmStop() : command(name)),
  }, text)));
}

// One click must not end a run of hours: the second step names the run.
function confirmStop() {
  const run = status.name ?? (status.run == null ? 'this run' : `run ${status.run}`);
  const close = () => { delete section('run-buttons').dataset.key; buttons(); };
  section('run-buttons').replaceChildren(
    h('span', {}, `End ${run}?`),
    h('button', { type: 'button', id: 'do-stop-now', className: 'stop', onclick: () => { close(); command('stop'); } }, `Stop ${run}`),
    h('button', { type: 'button', id: 'do-not-stop', onclick: close }, 'Continue'));
  section('run-buttons').dataset.key = JSON.stringify([status.controlled, status.commands]);
}

async function command(name) {
  const details = section('settings').closest('details');
  if (name === 'configure' && !details.open) { details.open = true; return; }
  const body = { revision: status.revision };
  if (name === 'configure') body.settings = settings();
  document.activeElement?.blur();
  section('run-error').textContent = '';
  const wrong = await send(name, body);
  section('run-error').textContent = wrong ?? '';
  if (name === 'configure' && !wrong) details.open = false;
}

const number = (text) => (text.trim() === '' ? undefined : Number(text));

function settings() {
  const form = new FormData(section('settings'));
  const keys = form.getAll('key');
  const values = form.getAll('value');
  const metadata = Object.fromEntries(keys.map((key, at) => [key.trim(), values[at]]).filter(([key]) => key !== ''));
  const gigabytes = number(form.get('stop-gigabytes'));
  const stop = { events: number(form.get('stop-events')), seconds: number(form.get('stop-seconds')), bytes: gigabytes === undefined ? undefined : Math.round(gigabytes * 1e9) };
  return {
    run: number(form.get('run')), name: form.get('name').trim() || undefined, profile: form.get('profile').trim() || undefined,
    volumes: form.getAll('volume'), metadata, stop,
  };
}

function field(label, name, value, more = {}) {
  return h('label', {}, label, h('input', { name, value: value ?? '', autocomplete: 'off', ...more }));
}

function pair(key = '', value = '') {
  const line = h('div', { className: 'pair' }, h('input', { name: 'key', value: key, placeholder: 'name', ariaLabel: 'name' }),
    h('input', { name: 'value', value, placeholder: 'value', ariaLabel: 'value' }),
    h('button', { type: 'button', className: 'small', ariaLabel: 'remove', onclick: () => line.remove() }, '×'));
  return line;
}

function show(now) {
  shownRevision = now.revision;
  const given = now.settings;
  const lines = Object.entries(given.metadata ?? {}).map(([key, value]) => pair(key, value));
  const list = h('div', {}, lines);
  const chosen = (path) => !(given.volumes ?? []).length || given.volumes.includes(path);
  section('settings').replaceChildren(
    field('run number', 'run', given.run, { type: 'number', min: 0, placeholder: 'next' }),
    field('name of the recording', 'name', given.name, { placeholder: 'by time' }),
    field('profile', 'profile', given.profile, { placeholder: 'none' }),
    field('stop after (events)', 'stop-events', given.stop?.events, { type: 'number', min: 1, placeholder: 'never' }),
    field('stop after (GB)', 'stop-gigabytes', given.stop?.bytes ? given.stop.bytes / 1e9 : '', { type: 'number', min: 0, step: 'any', placeholder: 'never' }),
    field('stop after (s)', 'stop-seconds', given.stop?.seconds, { type: 'number', min: 0, step: 'any', placeholder: 'never' }),
    now.volumes.length > 0 && h('fieldset', { className: 'wholly' }, h('legend', {}, 'volumes'), now.volumes.map((volume) => h('label', { className: 'line' },
      h('input', { type: 'checkbox', name: 'volume', value: volume.path, checked: chosen(volume.path) }), `${volume.path}, ${bytes(volume.free_bytes)} free`))),
    h('fieldset', { className: 'wholly' }, h('legend', {}, 'metadata'), list,
      h('button', { type: 'button', className: 'small', onclick: () => list.append(pair()) }, 'add entry')),
    h('div', { className: 'wholly' }, h('button', { type: 'submit', disabled: !now.commands.includes('configure') }, 'Apply')));
}
