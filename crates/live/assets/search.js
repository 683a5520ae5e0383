// Progress of a qualification: the current trial, and the results so far.
import { bar, colour, count, fill, h, put, rate, section, span, table } from './draw.js';

let chart = null;
let latest = null;
document.addEventListener('themechange', () => { chart?.dispose(); chart = null; if (latest) draw(latest); });

const TONES = { FIT: 'good', 'FIT WITH LIMITS': 'doubtful', 'NOT FIT': 'bad', INCONCLUSIVE: 'doubtful' };

export function search(now) {
  latest = now;
  const { trial } = now;
  const passed = trial ? (Date.now() - trial.since_unix_ns / 1e6) / 1000 / Math.max(0.1, trial.seconds) : 0;
  const verdict = h('div', { className: `verdict ${TONES[now.verdict] ?? ''}` },
    h('p', { className: 'word' }, now.verdict ?? 'QUALIFYING'), h('h1', {}, `${now.profile} needs ${rate(now.required_bytes_per_second)}`),
    now.verdict_reasons.map((reason) => h('p', {}, reason)), now.result_directory && h('p', { className: 'note' }, now.result_directory));
  const doing = h('div', {}, h('h3', {}, now.phase), now.estimate_seconds !== null && h('p', { className: 'note' }, `at most ${span(now.estimate_seconds)} remaining`),
    trial && h('p', {}, `${trial.label}: ${trial.bytes_per_second === null ? 'unlimited rate' : rate(trial.bytes_per_second)} for ${span(trial.seconds)}`),
    trial && bar(passed), now.ceilings.map((one) => h('p', { className: 'note' }, `${one.what}: ${rate(one.bytes_per_second)}`)));
  put(section('headline'), verdict, doing);
  if (!section('search-plot')) fill('search', h('div', { id: 'search-plot', className: 'plot' }), h('div', { id: 'search-table' }), h('div', { id: 'search-said' }));
  draw(now);
  const head = [{ name: 'trial' }, { name: 'asked', figures: true }, { name: 'durable', figures: true }, { name: 'for', figures: true }, { name: 'lost', figures: true }, { name: '' }];
  section('search-table').replaceChildren(table(head, now.trials.slice(-40).map((one, at) => [
    `${Math.max(0, now.trials.length - 40) + at + 1} ${one.phase}`, rate(one.asked_bytes_per_second), rate(one.durable_bytes_per_second), span(one.seconds), count(one.lost_events),
    h('span', { className: one.passed ? 'good-text' : 'bad-text' }, one.passed ? 'held' : (one.failed_condition ?? 'did not hold')),
  ]), 'stack'));
  section('search-said').replaceChildren(...now.said.slice(-8).map((line) => h('p', { className: 'note' }, line)));
}

function draw(now) {
  const place = section('search-plot');
  if (typeof echarts === 'undefined' || !place.clientWidth) return;
  chart ??= echarts.init(place, null, { renderer: 'svg' });
  const axis = { axisLine: { lineStyle: { color: colour('--line') } }, axisLabel: { color: colour('--soft'), fontSize: 11 }, splitLine: { lineStyle: { color: colour('--grid') } }, nameTextStyle: { color: colour('--soft') } };
  const points = (passed) => now.trials.map((one, at) => [at + 1, one.asked_bytes_per_second / 1e6, one.passed]).filter((one) => one[2] === passed).map(([x, y]) => [x, y]);
  chart.setOption({
    animation: false, grid: { left: 56, right: 14, top: 28, bottom: 34 }, legend: { top: 0, left: 84, textStyle: { color: colour('--soft'), fontSize: 11 } },
    xAxis: { ...axis, type: 'value', name: 'trial', nameLocation: 'middle', nameGap: 20, minInterval: 1, min: 0, max: Math.max(6, now.trials.length + 1), splitLine: { show: false } },
    yAxis: { ...axis, type: 'value', name: 'MB/s', min: 0 },
    series: [
      { name: 'held', type: 'scatter', symbol: 'circle', symbolSize: 9, color: colour('--good'), data: points(true),
        markLine: { silent: true, symbol: 'none', label: { formatter: 'required', position: 'insideEndTop', color: colour('--soft') }, lineStyle: { color: colour('--doubtful'), type: 'dashed' }, data: [{ yAxis: now.required_bytes_per_second / 1e6 }] } },
      { name: 'did not hold', type: 'scatter', symbol: 'diamond', symbolSize: 11, color: colour('--bad'), data: points(false) },
    ],
  }, true);
}
