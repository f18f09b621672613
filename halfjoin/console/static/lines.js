// A chart of the last five minutes.
import { html, useEffect, useRef } from "/static/vendor/preact-htm.js";

export function Lines({ title, points, series }) {
  const place = useRef(null);
  const chart = useRef(null);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const soft = getComputedStyle(place.current).color;
    const width = () => Math.max(200, place.current.clientWidth);
    const axis = { stroke: soft, font: "12px system-ui", grid: { stroke: style.getPropertyValue("--line") || "#8884", width: 1 } };
    chart.current = new uPlot({
      width: width(), height: 170, cursor: { y: false }, legend: { live: true },
      series: [{}, ...series.map((one) => ({ label: one.name, stroke: one.colour, width: 2 }))],
      axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((n) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1e3 ? `${n / 1e3}k` : n)) }],
    }, series.map(() => []).concat([[]]), place.current);
    const resized = new ResizeObserver(() => chart.current.setSize({ width: width(), height: 170 }));
    resized.observe(place.current);
    return () => { resized.disconnect(); chart.current.destroy(); };
  }, []);
  useEffect(() => {
    chart.current.setData([points.map((one) => one.at), ...series.map((line) => points.map((one) => one[line.key] * (line.by || 1)))]);
  }, [points]);
  return html`<section><h2>${title}</h2><div class="soft" ref=${place}></div></section>`;
}
