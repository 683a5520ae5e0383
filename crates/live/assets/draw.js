// Drawing helpers of the page: text elements, figures with units, bars and line charts.

// Creates an element. Children are elements or texts; a text is never parsed as markup.
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== 'list') element[key] = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Replaces the children; null and false are skipped.
export function put(place, ...children) {
  place.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

export const section = (id) => document.getElementById(id);

// Fills a section and shows it; an empty section is hidden.
export function fill(id, ...children) {
  const place = section(id);
  const body = place.querySelector('.body') ?? place;
  const kept = children.flat().filter(Boolean);
  body.replaceChildren(...kept);
  place.hidden = kept.length === 0;
}

const scaled = (value, unit, steps) => {
  let at = 0;
  while (at + 1 < steps.length && Math.abs(value) >= 1000) { value /= 1000; at += 1; }
  const digits = at === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${steps[at]}${unit}`;
};
export const bytes = (value) => (value === null || value === undefined ? '–' : scaled(value, 'B', ['', 'k', 'M', 'G', 'T', 'P']));
export const rate = (value) => (value === null || value === undefined ? '–' : `${bytes(value)}/s`);
export const many = (value, name) => `${count(value)} ${name}${value === 1 ? '' : 's'}`;
export const count = (value) => (value === null || value === undefined ? '–' : Number(value).toLocaleString('en-GB'));
export const perSecond = (value) => `${value >= 100 || value === 0 ? count(Math.round(value)) : value.toPrecision(3)} /s`;
export const percent = (share) => (share === null || share === undefined ? '–' : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`);

export function span(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 100) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  if (seconds < 6000) return `${(seconds / 60).toFixed(0)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(seconds < 864000 ? 1 : 0)} days`;
}
export const clock = (unixMs) => new Date(unixMs).toLocaleTimeString('en-GB');

// A bar that is full at 1; `tone` colours it.
export function bar(share, tone = '') {
  const inner = h('i');
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h('div', { className: `bar ${tone}`, role: 'img', ariaLabel: percent(share) }, inner);
}
export const toneAbove = (share, doubtful, bad) => (share >= bad ? 'bad' : share >= doubtful ? 'doubtful' : '');

export function tile(name, value, detail) {
  return h('div', { className: 'tile' }, h('span', {}, name), h('b', {}, value), h('i', {}, detail ?? ''));
}

// Creates a table from column descriptions and rows of cells; a cell is a text or an element.
export function table(head, rows, classes = '') {
  const cell = (value, at) => {
    const td = h('td', { className: head[at].figures ? 'n' : (head[at].className ?? '') }, value);
    if (at > 0) td.dataset.name = head[at].name;
    return td;
  };
  return h('div', { className: 'wide' }, h('table', { className: classes },
    h('thead', {}, h('tr', {}, head.map((column) => h('th', { className: column.figures ? 'n' : '' }, column.name)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map(cell))))));
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Line chart over time. The chart library may load after the first figures.
export class Lines {
  constructor(place, unit, series) {
    this.place = place; this.unit = unit; this.series = series; this.chart = null; this.drawn = null;
    new ResizeObserver(() => this.chart?.resize()).observe(place);
    document.addEventListener('themechange', () => {
      this.chart?.dispose(); this.chart = null;
      if (this.drawn) this.draw(...this.drawn);
    });
  }
  // `data`: the points [time, value] of each series.
  draw(data, marks = []) {
    this.drawn = [data, marks];
    if (typeof echarts === 'undefined' || this.place.clientWidth === 0) return;
    this.chart ??= echarts.init(this.place, null, { renderer: 'svg' });
    const axis = {
      axisLine: { lineStyle: { color: colour('--line') } }, axisLabel: { color: colour('--soft'), fontSize: 11, hideOverlap: true },
      splitLine: { lineStyle: { color: colour('--grid') } }, nameTextStyle: { color: colour('--soft'), fontSize: 11 },
    };
    this.chart.setOption({
      animation: false,
      grid: { left: 52, right: 14, top: 26, bottom: 24 },
      legend: { top: 0, left: 84, itemHeight: 8, itemWidth: 14, textStyle: { color: colour('--soft'), fontSize: 11 } },
      tooltip: {
        trigger: 'axis', backgroundColor: colour('--raised'), borderColor: colour('--line'), padding: [4, 8],
        textStyle: { color: colour('--text'), fontSize: 12 }, valueFormatter: (value) => (value === null || value === undefined ? '–' : `${Number(value).toFixed(1)} ${this.unit}`),
      },
      xAxis: { ...axis, type: 'time', splitLine: { show: false } },
      yAxis: { ...axis, type: 'value', name: this.unit, min: 0, minInterval: 0.001 },
      series: this.series.map((one, at) => ({
        name: one.name, type: 'line', showSymbol: false, data: data[at], lineStyle: { width: at === 0 ? 2 : 1.5, type: one.dash ? 'dashed' : 'solid' },
        color: colour(one.colour),
        markLine: at === 0 && marks.length ? {
          silent: true, symbol: 'none', label: { formatter: '{b}', position: 'insideEndTop', color: colour('--soft'), fontSize: 11 },
          lineStyle: { color: colour('--doubtful'), type: 'dashed' }, data: marks.map((mark) => ({ name: mark.name, yAxis: mark.value })),
        } : undefined,
      })),
    }, true);
  }
}
