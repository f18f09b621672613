// One view or table: its SQL, plan, contents as of a time, and its changes as they come.
import { html, useEffect, useState } from "/static/vendor/preact-htm.js";
import { count, many, moment, Rows, useAnswer } from "/static/parts.js";
import { Plan } from "/static/plan.js";

export function View({ name, tick }) {
  const path = `/api/views/${encodeURIComponent(name)}`;
  const view = useAnswer(path, Math.floor(tick / 5));
  const [time, setTime] = useState(null);
  if (!view) return html`<p class="empty">…</p>`;
  if (view.error) return html`<section class="says bad">${view.error}</section>`;
  return html`
    ${view.errors ? html`<section class="says bad"><p>${name} cannot be read: an expression fails for these rows${view.errors.more ? ", and for more" : ""}.</p>
      <${Rows} answer=${view.errors} /></section>` : null}
    <section><h2>${name}</h2><pre>${view.sql}</pre></section>
    ${view.plan ? html`<${Plan} key=${name} view=${view} />` : null}
    <${Contents} key=${`c${name}`} path=${path} view=${view} time=${time} setTime=${setTime} tick=${tick} />
    ${view.plan ? html`<${Live} key=${`l${name}`} path=${path} />` : null}`;
}

function Contents({ path, view, time, setTime, tick }) {
  const last = view.upper - 1;
  const at = time ?? last;
  const answer = useAnswer(`${path}/contents${time === null ? "" : `?as_of=${time}`}`, time === null ? Math.floor(tick / 5) : 0);
  const slides = view.since !== null && view.since < last;
  return html`<section><h2>Contents <small>as of ${moment(at, view.clock)}${time === null ? ", the last closed time" : ""}</small></h2>
    ${slides ? html`<label><span class="soft">from ${moment(view.since, view.clock)}</span>
      <input type="range" aria-label="time" min=${view.since} max=${last} value=${at} step="1"
        onChange=${(event) => setTime(Number(event.target.value) >= last ? null : Number(event.target.value))} /></label>` : null}
    <${Rows} answer=${answer} /></section>`;
}

function Live({ path }) {
  const [pushes, set] = useState([]);
  const [on, turn] = useState(false);
  useEffect(() => {
    if (!on) return undefined;
    const source = new EventSource(`${path}/changes`);
    source.onmessage = (event) => {
      const push = JSON.parse(event.data);
      if (push.changed || push.error) set((before) => [push, ...before].slice(0, 5));
    };
    return () => source.close();
  }, [on]);
  const mark = (row, columns) => (Number(row[columns.findIndex((one) => one.name === "__diff")]) < 0 ? "gone" : "come");
  return html`<section><h2>Changes <button aria-pressed=${on} onClick=${() => turn(!on)}>${on ? "stop" : "follow"}</button></h2>
    ${pushes.map((push) => html`<p class="soft">${many(push.changed, "row")} changed${push.count < push.changed ? `; the last ${push.count}` : ""}</p><${Rows} answer=${push} mark=${mark} />`)}
    ${on && !pushes.length ? html`<p class="soft">Waiting for a change…</p>` : null}</section>`;
}
