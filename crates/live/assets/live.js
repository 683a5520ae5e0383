// Main script: passes state changes to the parts of the page; holds the token, the theme and the connection.
import * as control from './run.js';
import * as fleet from './fleet.js';
import * as flow from './flow.js';
import { fill, h, section } from './draw.js';
import { search } from './search.js';
import { setCards, streams } from './streams.js';
import { mount } from './catalog.js';

const QUIET_MS = 5000;
let token = sessionStorage.getItem('keepup-token');
let run = null;
let now = null;
let heard = 0;
let source = null;

// The token comes after the #, which is never sent, and is removed from the address at once.
const given = /^#token=(.+)$/.exec(location.hash);
if (given) {
  token = decodeURIComponent(given[1]);
  sessionStorage.setItem('keepup-token', token);
  history.replaceState(null, '', location.pathname);
}

async function ask(path) {
  const answer = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (answer.ok) return answer;
  const reply = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(reply.error ?? `${path}: ${answer.status}`), { status: answer.status });
}

const fetchJson = async (path) => (await ask(path)).json();

async function fetchEvent(path) {
  const answer = await ask(path);
  return { head: JSON.parse(answer.headers.get('keepup-event')), payload: await answer.arrayBuffer() };
}

// Asks for the token, then calls `then`.
function askForToken(why, then) {
  const input = h('input', { type: 'password', placeholder: 'token', ariaLabel: 'token', autocomplete: 'off' });
  const form = h('form', {
    className: 'row', onsubmit: (event) => {
      event.preventDefault();
      token = input.value.trim();
      sessionStorage.setItem('keepup-token', token);
      section('entry').hidden = true;
      then();
    },
  }, h('span', {}, why), input, h('button', { type: 'submit' }, 'Continue'));
  input.style.width = '22em';
  fill('entry', form);
  input.focus();
}

// Sends a command; returns the error, if any.
control.connect(async (name, body) => {
  if (!token) { askForToken('Commands need the token that keepup printed at its start.', () => control.run(run)); return 'the token is required'; }
  try {
    const answer = await fetch(`/api/v1/run/${name}`, {
      method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    });
    const reply = await answer.json();
    if (answer.ok) { takeRun(reply); return null; }
    if (answer.status === 401) askForToken('This is not the token that keepup printed at its start.', () => control.run(run));
    return reply.hint ? `${reply.error} (${reply.hint})` : reply.error;
  } catch (error) {
    return `the recorder does not answer: ${error.message}`;
  }
});

function takeRun(status) {
  const before = run?.state;
  run = status;
  section('headline').hidden = false;
  if (before && before !== run.state && run.state !== 'recording') now = null;
  if (before && before !== run.state && ['sealed', 'error'].includes(run.state)) loadCatalog();
  draw();
}

// Loads stored results and recordings, if the server has any.
async function loadCatalog() {
  const place = section('catalog');
  if (!place) return;
  try { await fetchJson('/api/v1/results'); } catch { return; }
  place.hidden = false;
  if (!run) section('headline').hidden = true;
  mount(place.querySelector('.body'), { fetchJson, fetchEvent });
}

function draw() {
  const shown = now?.hosts ? fleet : undefined;
  if (run) flow.headline(run, now, shown);
  flow.warnings(run, now, shown);
  control.run(run);
}

function takeNow(moment) {
  now = moment;
  draw();
  for (const id of ['flow', 'streams']) section(id).hidden = !section(id).querySelector('.body').hasChildNodes();
  flow.rates(now);
  flow.volumes(now);
  streams(now);
  flow.ledger(now);
  flow.machine(now);
}

function takeFleet(figures) {
  now = figures;
  draw();
  fleet.fleet(now);
}

// Between trials the figures are those of the previous trial; after the last trial they are hidden.
function takeSearch(state) {
  section('headline').hidden = false;
  search(state);
  for (const id of ['flow', 'volumes', 'streams', 'ledger', 'machine']) {
    section(id).classList.toggle('old', !state.trial);
    if (state.verdict) section(id).hidden = true;
  }
}

function listen() {
  source?.close();
  source = new EventSource('/api/v1/events');
  const on = (name, take) => source.addEventListener(name, (event) => { heard = Date.now(); take(JSON.parse(event.data)); });
  on('run', takeRun);
  on('streams', setCards);
  on('now', takeNow);
  on('search', takeSearch);
  on('fleet', takeFleet);
  source.onopen = () => { heard = Date.now(); };
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(begin, 2000); };
}

// Marks stale figures.
setInterval(() => {
  const contact = section('contact');
  const lost = heard === 0 || source?.readyState !== EventSource.OPEN || (run?.state === 'recording' && Date.now() - heard > QUIET_MS);
  contact.className = lost ? 'lost' : '';
  contact.textContent = lost ? (heard ? `no contact for ${Math.round((Date.now() - heard) / 1000)} s` : 'no contact') : 'live';
}, 500);

section('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark';
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('keepup-theme', document.documentElement.dataset.theme);
  document.dispatchEvent(new Event('themechange'));
});
const theme = localStorage.getItem('keepup-theme');
if (theme) document.documentElement.dataset.theme = theme;

async function begin() {
  if (token) await fetch('/api/v1/session', { method: 'POST', headers: { Authorization: `Bearer ${token}` } }).catch(() => null);
  try {
    await flow.recall(fetchJson);
    listen();
    loadCatalog();
  } catch (error) {
    if (error.status === 401) askForToken('This page needs the token.', begin);
    else setTimeout(begin, 2000);
  }
}
begin();
