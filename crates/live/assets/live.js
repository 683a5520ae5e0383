// The page: listens to what changes and hands it to its parts; holds the token, the theme and the connection.
import * as control from './run.js';
import * as flow from './flow.js';
import { fill, h, section } from './draw.js';
import { search } from './search.js';
import { setCards, streams } from './streams.js';
import { mount } from './shelf.js';

const QUIET_MS = 5000;
let token = sessionStorage.getItem('keepup-token');
let run = null;
let now = null;
let heard = 0;
let source = null;

// The token comes behind the #, which is never sent; it is taken out of the address at once.
const given = /^#token=(.+)$/.exec(location.hash);
if (given) {
  token = decodeURIComponent(given[1]);
  sessionStorage.setItem('keepup-token', token);
  history.replaceState(null, '', location.pathname);
}

async function ask(path) {
  const answer = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(said.error ?? `${path}: ${answer.status}`), { status: answer.status });
}

const fetchJson = async (path) => (await ask(path)).json();

async function fetchEvent(path) {
  const answer = await ask(path);
  return { head: JSON.parse(answer.headers.get('keepup-event')), payload: await answer.arrayBuffer() };
}

// Asks for the token and goes on with `then`.
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
  }, h('span', {}, why), input, h('button', { type: 'submit' }, 'Go on'));
  input.style.width = '22em';
  fill('entry', form);
  input.focus();
}

// Sends a command; gives back what went wrong.
control.connect(async (name, body) => {
  if (!token) { askForToken('Commands need the token that keepup told when it started.', () => control.run(run)); return 'the token is needed first'; }
  try {
    const answer = await fetch(`/api/v1/run/${name}`, {
      method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    });
    const said = await answer.json();
    if (answer.ok) { takeRun(said); return null; }
    if (answer.status === 401) askForToken('This is not the token that keepup told when it started.', () => control.run(run));
    return said.hint ? `${said.error} (${said.hint})` : said.error;
  } catch (error) {
    return `the recorder does not answer: ${error.message}`;
  }
});

function takeRun(status) {
  const before = run?.state;
  run = status;
  section('headline').hidden = false;
  if (before && before !== run.state && run.state !== 'recording') now = null;
  if (before && before !== run.state && ['sealed', 'error'].includes(run.state)) shelf();
  draw();
}

// What is stored, where the server has a shelf.
async function shelf() {
  const place = section('shelf');
  try { await fetchJson('/api/v1/results'); } catch { return; }
  place.hidden = false;
  if (!run) section('headline').hidden = true;
  mount(place.querySelector('.body'), { fetchJson, fetchEvent });
}

function draw() {
  if (run) flow.headline(run, now);
  flow.warnings(run, now);
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

// Between two trials of a search figures are those of the one before; after the last there are none.
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
  source.onopen = () => { heard = Date.now(); };
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(begin, 2000); };
}

// A screen that shows old figures is worse than one that shows none.
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
    shelf();
  } catch (error) {
    if (error.status === 401) askForToken('This page needs the token.', begin);
    else setTimeout(begin, 2000);
  }
}
begin();
