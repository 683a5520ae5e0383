// Draws the charts of a report: reads their options from the page, fills in the theme's colours, follows the
// width of the page, the theme and the printer. All that is drawn is declared in the options.
(() => {
  'use strict';
  const root = document.documentElement;
  const PRINTED_WIDTH = 680;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const plots = [...document.querySelectorAll('.plot')];
  let drawn = [];
  let printing = false;

  const painted = () => {
    const style = getComputedStyle(root);
    return (text) => (typeof text === 'string' && text.startsWith('--') ? style.getPropertyValue(text).trim() : text);
  };
  const isColour = (key) => key === 'color' || key === 'borderColor' || key === 'backgroundColor';
  const option = (plot, paint) =>
    JSON.parse(document.getElementById('chart-' + plot.dataset.chart).textContent, (key, value) => {
      if (!isColour(key)) return value;
      return Array.isArray(value) ? value.map(paint) : paint(value);
    });

  const theme = (paint) => {
    const axis = {
      axisLine: { show: true, lineStyle: { color: paint('--line') } },
      axisTick: { lineStyle: { color: paint('--line') } },
      axisLabel: { color: paint('--soft'), fontSize: 11, hideOverlap: true },
      splitLine: { lineStyle: { color: paint('--grid') } },
      nameTextStyle: { color: paint('--soft'), fontSize: 11 },
    };
    const categories = { ...axis, splitLine: { show: false } };
    return {
      textStyle: { color: paint('--text'), fontFamily: getComputedStyle(document.body).fontFamily },
      valueAxis: axis, logAxis: axis, categoryAxis: categories,
      visualMap: { textStyle: { color: paint('--soft'), fontSize: 11 } },
      tooltip: {
        backgroundColor: paint('--raised'), borderColor: paint('--line'), padding: [4, 8],
        textStyle: { color: paint('--text'), fontSize: 12 }, axisPointer: { lineStyle: { color: paint('--soft') } },
      },
      dataZoom: {
        borderColor: paint('--line'), fillerColor: paint('--band'), handleStyle: { color: paint('--soft') },
        moveHandleStyle: { color: paint('--line') }, textStyle: { color: paint('--soft'), fontSize: 10 },
      },
    };
  };

  // Where there is little room names of rows take at most a third of it, in several lines.
  const narrowed = (chart, width) => {
    if (width >= 560) return chart;
    for (const axis of [].concat(chart.yAxis)) {
      if (axis.type === 'category' && axis.data.some((name) => name)) {
        axis.axisLabel = { ...axis.axisLabel, width: width * 0.31, overflow: 'break', lineHeight: 12, fontSize: 10 };
      }
    }
    return chart;
  };

  const draw = () => {
    drawn.forEach((chart) => chart.dispose());
    const paint = painted();
    const look = theme(paint);
    drawn = plots.map((plot) => {
      const chart = echarts.init(plot, look, { renderer: 'svg', width: printing ? PRINTED_WIDTH : undefined });
      chart.setOption(narrowed(option(plot, paint), chart.getWidth()));
      chart.getZr().flush();
      return chart;
    });
  };

  const print = (begins) => {
    if (begins === printing) return;
    printing = begins;
    root.classList.toggle('printing', begins);
    document.querySelectorAll('figure details').forEach((one) => {
      if (begins && !one.open) {
        one.open = true;
        one.dataset.opened = '';
      } else if (!begins && 'opened' in one.dataset) {
        one.open = false;
        delete one.dataset.opened;
      }
    });
    draw();
  };

  let waiting = 0;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => printing || draw(), 60);
  });
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  dark.addEventListener('change', draw);
  document.getElementById('theme').addEventListener('click', () => {
    const isDark = (root.dataset.theme || (dark.matches ? 'dark' : 'light')) === 'dark';
    root.dataset.theme = isDark ? 'light' : 'dark';
    draw();
  });
  draw();
  root.dataset.drawn = String(drawn.length);
})();
