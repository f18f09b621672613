// What every page uses: numbers for people, tables of rows, calls, and state that follows the server.
import { html, useEffect, useState } from "/static/vendor/preact-htm.js";

export const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en"));
export const many = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
export const size = (n) => {
  for (const [unit, bytes] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (n >= bytes) return `${(n / bytes).toFixed(1)} ${unit}`;
  }
  return `${n} B`;
};
export const moment = (time, clock) =>
  clock === "wall" && time > 0 && time < 8.6e15 ? new Date(time).toISOString().replace("T", " ").replace("Z", " UTC") : String(time);

export async function ask(path, body) {
  const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  try {
    return await (await fetch(path, options)).json();
  } catch (error) {
    return { error: `the engine does not answer: ${error.message}` };
  }
}

// The answer to a path, asked again when `again` changes; null until it comes.
export function useAnswer(path, again) {
  const [answer, set] = useState(null);
  useEffect(() => {
    let wanted = true;
    ask(path).then((found) => wanted && set(found));
    return () => { wanted = false; };
  }, [path, again]);
  return answer;
}

export function Rows({ answer, mark }) {
  if (!answer) return html`<p class="soft">…</p>`;
  if (answer.error) return html`<p class="bad" role="alert">${answer.error}</p>`;
  const { columns, rows, count: all } = answer;
  if (!columns) return null;
  return html`<div class="scroll" tabindex="0"><table>
      <thead><tr>${columns.map((one) => html`<th class=${one.number ? "number" : ""}>${one.name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr class=${mark ? mark(row, columns) : ""}>${row.map((value, at) =>
        html`<td class=${columns[at].number ? "number" : value && value.length > 60 ? "wide" : ""}>${value === null ? html`<i>NULL</i>` : value}</td>`)}</tr>`)}</tbody>
    </table></div>
    ${all > rows.length ? html`<p class="soft">${count(rows.length)} of ${count(all)} rows</p>` : all === 0 ? html`<p class="soft">no rows</p>` : null}`;
}

export function Figure({ name, children }) {
  return html`<div class="figure"><span>${name}</span><strong>${children}</strong></div>`;
}
