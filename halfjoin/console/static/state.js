// What is kept: tables, views, nodes and arrangements, who shares each, what dropping a view would free; sources and sinks.
import { html } from "/static/vendor/preact-htm.js";
import { count, size, useAnswer } from "/static/parts.js";

export function State({ tick }) {
  const held = useAnswer("/api/collections", Math.floor(tick / 5));
  if (!held) return html`<p class="empty">…</p>`;
  if (held.error) return html`<section class="says bad">${held.error}</section>`;
  return html`
    <section><h2>Tables, views and nodes <small>a node is a step that views share</small></h2><div class="scroll" tabindex="0"><table>
      <thead><tr><th>name</th><th>kind</th><th class="number">updates</th><th class="number">bytes</th><th class="number">on disk</th>
        <th class="number">dropping it frees</th><th class="number">rows that fail</th><th>used by</th></tr></thead>
      <tbody>${held.collections.map((one) => html`<tr>
        <td class="name">${one.kind === "node" ? one.name : html`<a href="#/view/${encodeURIComponent(one.name)}">${one.name}</a>`}</td><td>${one.kind}</td>
        <td class="number">${count(one.updates)}</td><td class="number">${size(one.row_bytes + one.index_bytes)}</td><td class="number">${size(one.file_bytes)}</td>
        <td class="number">${one.frees === null ? "–" : size(one.frees)}</td><td class="number ${one.errors ? "bad" : ""}">${count(one.errors)}</td>
        <td class="wide">${one.users.join(", ")}</td></tr>`)}</tbody></table></div></section>
    <section><h2>Arrangements <small>indexes that delta paths look changes up in</small></h2><div class="scroll" tabindex="0"><table>
      <thead><tr><th>index</th><th class="number">entries</th><th class="number">bytes</th><th class="number">on disk</th><th>used by</th><th>once large only rows where</th></tr></thead>
      <tbody>${held.arrangements.map((one) => html`<tr><td class="name">${one.name}</td><td class="number">${count(one.rows)}</td><td class="number">${size(one.bytes)}</td>
        <td class="number">${size(one.file_bytes)}</td><td class="wide">${one.users.join(", ")}</td><td class="wide">${one.only}</td></tr>`)}</tbody></table></div></section>
    <section><h2>Sources</h2>${held.sources.length ? html`<div class="scroll" tabindex="0"><table>
      <thead><tr><th>source</th><th>kind</th><th>into</th><th>state</th><th class="number">rows</th><th class="number">bad records</th><th>behind</th><th>problem</th></tr></thead>
      <tbody>${held.sources.map((one) => html`<tr><td>${one.name}</td><td>${one.kind}</td><td class="wide">${one.into.join(", ")}</td><td>${one.state}</td>
        <td class="number">${count(one.rows)}</td><td class="number ${one.bad ? "bad" : ""}">${count(one.bad)}</td><td>${one.lag === null ? "–" : `${one.lag} ${one.unit}`}</td>
        <td class="wide bad">${one.error || ""}</td></tr>`)}</tbody></table></div>` : html`<p class="soft">There are none.</p>`}</section>
    <section><h2>Sinks</h2>${held.sinks.length ? html`<div class="scroll" tabindex="0"><table>
      <thead><tr><th>sink</th><th>of</th><th>into</th><th class="number">batches that wait</th><th>problem</th></tr></thead>
      <tbody>${held.sinks.map((one) => html`<tr><td>${one.name}</td><td>${one.collection}</td><td class="wide">${one.target}</td>
        <td class="number">${one.waiting}</td><td class="wide bad">${one.error || ""}</td></tr>`)}</tbody></table></div>` : html`<p class="soft">There are none.</p>`}</section>`;
}
