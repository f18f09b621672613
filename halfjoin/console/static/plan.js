// The plan of a view as a picture: tables and nodes, what a change passes through, and where it is looked up (dashed).
import { Graph, layout } from "/static/vendor/dagre.js";
import { html, useMemo, useState } from "/static/vendor/preact-htm.js";
import { count, many, size } from "/static/parts.js";

const WIDE = 214, HIGH = 52, LINE = 19, LETTERS = 24; // a node's name of EXPLAIN fits into a line

export function Plan({ view }) {
  const [chosen, choose] = useState(view.name);
  const { nodes, graph } = useMemo(() => drawn(view), [view.name, view.plan]);
  const came = Object.values(view.in).reduce((sum, n) => sum + n, 0);
  const hot = (name) => came && Math.max(view.work[name]?.rows || 0, view.work[name]?.found || 0) > 20 * came;
  const box = graph.graph();
  return html`<section><h2>Plan <small>a change goes along solid lines and is looked up along dashed ones</small></h2><div class=${box.width > 620 ? "plan below" : "plan"}>
    <div class="scroll" tabindex="0"><svg width=${box.width + 20} height=${box.height + 20} viewBox="-10 -10 ${box.width + 20} ${box.height + 20}" role="group" aria-label="plan">
      ${graph.edges().map((edge) => html`<path class=${graph.edge(edge).looks ? "looks" : ""} d=${line(graph.edge(edge).points)} />`)}
      ${graph.nodes().map((name) => {
        const at = graph.node(name), node = nodes[name], did = view.work[name], lines = broken(name);
        return html`<g tabindex="0" role="button" aria-label=${name} class="${node.kind} ${name === chosen ? "chosen" : ""} ${hot(name) ? "hot" : ""}"
            transform="translate(${at.x - WIDE / 2} ${at.y - at.height / 2})" onClick=${() => choose(name)}
            onKeyDown=${(event) => (event.key === "Enter" || event.key === " ") && choose(name)}>
          <rect width=${WIDE} height=${at.height} rx="8" />
          <text y="21">${lines.map((part, row) => html`<tspan x="10" dy=${row ? LINE : 0}>${part}</tspan>`)}</text>
          <text x="10" y=${at.height - 12} class="small">${did ? `${many(did.rows, "row")} out, ${did.ms} ms` : view.in[name] ? `${many(view.in[name], "row")} in` : node.kind}</text></g>`;
      })}</svg></div>
    <${Side} name=${chosen} node=${nodes[chosen]} view=${view} /></div></section>`;
}

function Side({ name, node, view }) {
  if (!node) return null;
  const held = view.held[name], did = view.work[name];
  return html`<div class="side"><h2>${name}</h2>
    <p class="soft">${node.kind}${held ? `; holds ${many(held.rows, "update")}, ${size(held.bytes)}` : ""}</p>
    ${did ? html`<p>Last batch: ${did.found ? `${many(did.found, "row")} found, ` : ""}${many(did.rows, "row")} out in ${did.ms} ms.</p>` : node.kind === "table" ? null : html`<p class="soft">No recent batch has reached it.</p>`}
    ${node.shared?.length ? html`<p>Shared with ${node.shared.join(", ")}.</p>` : null}
    ${node.steps?.length ? html`<ul>${node.steps.map((step) => html`<li>${step}</li>`)}</ul>` : null}
    ${(node.joins || []).flat().map((path) => html`<p><b>Change of ${path.input}</b></p><ul>
      ${path.source.map((step) => html`<li>${step}</li>`)}
      ${path.lookups.map((one) => html`<li>look up ${one.by.join(", ") || "all"} in ${one.arrangement?.name || one.input} (${one.arrangement?.state || one.kind});
        about ${Number(one.found).toPrecision(2)} rows a change${one.steps.length ? `; ${one.steps.join("; ")}` : ""}</li>`)}
      ${path.final.map((step) => html`<li>${step}</li>`)}</ul>`)}</div>`;
}

function drawn(view) {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 34 });
  graph.setDefaultEdgeLabel(() => ({}));
  const nodes = { [view.name]: { kind: "view", joins: view.plan.joins, steps: view.plan.steps } };
  for (const node of view.plan.nodes) nodes[node.name] = { kind: node.kind, joins: node.joins, steps: node.steps, shared: node.shared_with };
  const add = (name) => { nodes[name] ||= { kind: "table" }; if (!graph.hasNode(name)) graph.setNode(name, { width: WIDE, height: HIGH + LINE * (broken(name).length - 1) }); };
  for (const [name, node] of Object.entries({ ...nodes })) {
    add(name);
    const link = (from, looks) => {
      add(from);
      if (from !== name && !(looks && graph.hasEdge(from, name))) graph.setEdge(from, name, { looks });
    };
    for (const path of node.joins.flat()) link(path.collection || path.input, false);
    for (const path of node.joins.flat()) for (const one of path.lookups) {
      const of = (one.arrangement?.name || "").replace(/\(.*$/s, "");
      if (of) link(of, true);
    }
    for (const step of node.steps || []) {
      const read = /^reduce (\S+)/.exec(step);
      if (read) link(read[1], false);
    }
  }
  layout(graph);
  return { nodes, graph };
}

const broken = (name) => name.match(new RegExp(`.{1,${LETTERS}}`, "gsu")) || [name];
const line = (points) => points.map((one, at) => `${at ? "L" : "M"}${one.x} ${one.y}`).join("");
