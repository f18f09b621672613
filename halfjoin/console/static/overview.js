// The first page: how much comes in, how long it takes, what is behind, and what to look at first.
import { html } from "/static/vendor/preact-htm.js";
import { Lines } from "/static/lines.js";
import { count, Figure, moment, size } from "/static/parts.js";

export function Overview({ now }) {
  if (!now) return html`<p class="empty">Waiting for the engine…</p>`;
  if (now.problem && !now.recent) return html`<section class="says bad">${now.problem}</section>`;
  return html`
    <section class=${now.failing.length ? "says bad" : "says"} aria-live="polite">${now.bottleneck}</section>
    <div class="figures">
      <${Figure} name="batches a second">${now.rate.batches.toFixed(1)}<//>
      <${Figure} name="rows a second">${now.rate.rows < 10 ? now.rate.rows.toFixed(1) : count(now.rate.rows)}<//>
      <${Figure} name="batch, median and 99th of 100">${now.latency.p50.toFixed(1)} / ${now.latency.p99.toFixed(1)} ms<//>
      <${Figure} name=${now.budget ? `memory of ${size(now.budget)}` : "memory"}>${size(now.memory)}<//>
      <${Figure} name="tables, views">${now.tables}, ${now.views}<//>
      <${Figure} name="readable below">${moment(now.upper, now.clock)}<//>
    </div>
    <div class="lines">
      <${Lines} title="Rows a second" points=${now.points} series=${[{ key: "rows", name: "rows", colour: "#3b82f6" }]} />
      <${Lines} title="Milliseconds of a batch" points=${now.points}
        series=${[{ key: "p50", name: "median", colour: "#10b981" }, { key: "p99", name: "99th", colour: "#f59e0b" }]} />
      <${Lines} title="Memory, MiB" points=${now.points} series=${[{ key: "memory", name: "memory", by: 1 / 2 ** 20, colour: "#8b5cf6" }]} />
    </div>
    ${now.behind.length ? html`<section><h2>What is behind</h2><ul class="behind">${now.behind.map((one) =>
      html`<li><b>${one.what}</b> ${one.far} <span class="bad">${one.why}</span></li>`)}</ul></section>` : null}
    <section><h2>Last batches</h2><div class="scroll" tabindex="0"><table>
      <thead><tr><th>ended</th><th>closed below</th><th class="number">ms</th><th>runner</th><th>rows in</th><th>rows out</th></tr></thead>
      <tbody>${now.recent.map((one) => html`<tr>
        <td>${new Date(one.at * 1000).toLocaleTimeString()}</td><td>${moment(one.upper, now.clock)}</td><td class="number">${one.ms}</td><td>${one.runner}</td>
        <td>${listed(one.tables)}</td><td class="wide">${listed(one.changed)}</td></tr>`)}</tbody></table></div>
      ${now.recent.length ? null : html`<p class="soft">There has been no batch yet.</p>`}</section>`;
}

const MOST = 6;
const listed = (counts) => {
  const all = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  const said = all.slice(0, MOST).map(([name, n]) => `${name} ${count(n)}`).join(", ");
  return all.length > MOST ? `${said} and ${all.length - MOST} more` : said || "–";
};
