// The console: pages by the address behind #, and one stream of events that all of them follow.
import { html, render, useEffect, useState } from "/static/vendor/preact-htm.js";
import { Overview } from "/static/overview.js";
import { Query } from "/static/query.js";
import { State } from "/static/state.js";
import { View } from "/static/view.js";
import { useAnswer } from "/static/parts.js";

const PAGES = [["", "Overview"], ["views", "Views"], ["state", "State"], ["query", "Query"]];

function App() {
  const [where, go] = useState(location.hash.slice(2));
  const [now, set] = useState(null);
  const [tick, setTick] = useState(0);
  const [lost, setLost] = useState(false);
  useEffect(() => {
    const moved = () => { go(location.hash.slice(2)); scrollTo(0, 0); };
    addEventListener("hashchange", moved);
    const source = new EventSource("/api/events");
    source.onmessage = (event) => { set(JSON.parse(event.data)); setTick((n) => n + 1); setLost(false); };
    source.onerror = () => setLost(true);
    return () => { removeEventListener("hashchange", moved); source.close(); };
  }, []);
  const [page, ...rest] = where.split("/");
  const name = decodeURIComponent(rest.join("/"));
  return html`<header><b>halfjoin</b><nav aria-label="pages">${PAGES.map(([at, title]) => html`<a href="#/${at}"
      class=${page === at || (at === "views" && page === "view") ? "here" : ""} aria-current=${page === at ? "page" : "false"}>${title}</a>`)}</nav>
      ${lost ? html`<span class="bad" role="alert">the engine does not answer</span>` : null}</header>
    <main>${page === "view" ? html`<${View} key=${name} name=${name} tick=${tick} />` : page === "views" ? html`<${Views} tick=${tick} />`
      : page === "state" ? html`<${State} tick=${tick} />` : page === "query" ? html`<${Query} />` : html`<${Overview} now=${now} />`}</main>`;
}

function Views({ tick }) {
  const held = useAnswer("/api/collections", Math.floor(tick / 5));
  const [sought, seek] = useState("");
  if (!held) return html`<p class="empty">…</p>`;
  if (held.error) return html`<section class="says bad">${held.error}</section>`;
  const found = held.collections.filter((one) => one.kind !== "node" && one.name.includes(sought));
  return html`<section><h2>Tables and views</h2><p><input type="search" aria-label="name" placeholder="name" value=${sought} onInput=${(event) => seek(event.target.value)} /></p>
    <div class="scroll" tabindex="0"><table><thead><tr><th>name</th><th>kind</th><th class="number">updates</th><th>state</th></tr></thead>
    <tbody>${found.map((one) => html`<tr><td><a href="#/view/${encodeURIComponent(one.name)}">${one.name}</a></td><td>${one.kind}</td>
      <td class="number">${one.updates.toLocaleString("en")}</td><td class=${one.errors ? "bad" : ""}>${one.errors ? "cannot be read" : "ok"}</td></tr>`)}</tbody></table></div></section>`;
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
