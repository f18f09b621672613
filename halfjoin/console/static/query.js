// A box for a query: its rows and its plan.
import { html, useState } from "/static/vendor/preact-htm.js";
import { ask, Rows } from "/static/parts.js";

export function Query() {
  const [sql, setSql] = useState(sessionStorage.sql || "");
  const [answer, set] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = async () => {
    sessionStorage.sql = sql;
    setBusy(true);
    const began = performance.now();
    const found = await ask("/api/query", { sql });
    set({ ...found, ms: performance.now() - began });
    setBusy(false);
  };
  const key = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } };
  return html`
    <section><h2>Query <small>a SELECT over tables and views; Ctrl-Enter runs it</small></h2>
      <textarea aria-label="query" spellcheck=${false} value=${sql} onInput=${(event) => setSql(event.target.value)} onKeyDown=${key}
        placeholder="SELECT * FROM …"></textarea>
      <button onClick=${run} disabled=${busy || !sql.trim()}>${busy ? "running…" : "run"}</button></section>
    ${answer ? html`<section><h2>Rows <small>${answer.ms.toFixed(0)} ms</small></h2>${answer.error ? html`<pre class="bad" role="alert">${answer.error}</pre>` : html`<${Rows} answer=${answer} />`}</section>
      ${answer.plan ? html`<section><h2>Plan</h2><pre>${answer.plan}</pre></section>` : null}` : null}`;
}
