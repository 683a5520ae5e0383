// What of Apache ECharts the reports use; `README.md` says how the build is made from it.
export { init } from 'echarts/core';
import { use } from 'echarts/core';
import { LineChart, BarChart, ScatterChart, HeatmapChart } from 'echarts/charts';
import {
    GridComponent, TooltipComponent, LegendComponent, DataZoomComponent, VisualMapComponent, MarkLineComponent,
    MarkAreaComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';
use([
    LineChart, BarChart, ScatterChart, HeatmapChart, GridComponent, TooltipComponent, LegendComponent,
    DataZoomComponent, VisualMapComponent, MarkLineComponent, MarkAreaComponent, SVGRenderer,
]);
