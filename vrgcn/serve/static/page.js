// The page of a served graph: asks for a node, shows its prediction, its neighbours and what would
// change it, and adds or removes edges. Texts of the graph are set as text, never as HTML.
"use strict";

const at = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let about = {};
let shown = null; // the latest request: answers to earlier ones are dropped

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawn(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

async function ask(path, options = {}) {
  const headers = { ...(options.body ? { "Content-Type": "application/json" } : {}) };
  if (at("token").value) headers.Authorization = `Bearer ${at("token").value}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) at("token-label").hidden = false;
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const error = found.error || { message: `the service answered ${answer.status}` };
    throw new Error(error.field ? `${error.field}: ${error.message}` : error.message);
  }
  return found;
}

function problem(error) {
  at("problem").textContent = error ? error.message : "";
  at("problem").hidden = !error;
}

const kindOf = () => (at("kind-label").hidden ? "" : at("kind").value);
const query = (kind) => (kind ? `?kind=${encodeURIComponent(kind)}` : "");
const number = (value) => Number(value).toPrecision(4);
const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toPrecision(2)}`;

async function start() {
  try {
    about = await ask("/about");
  } catch (error) {
    at("about").textContent = "";
    problem(error);
    return;
  }
  problem(null);
  at("about").textContent =
    `${about.nodes.toLocaleString("en")} nodes, ${about.edges.toLocaleString("en")} edges, ` +
    `change ${about.change}`;
  const first = about.predicted || []; // kinds that have predictions
  fill("kind", [...first, ...(about.kinds || []).filter((kind) => !first.includes(kind))]);
  fill("relation", about.relations || []);
  at("weight-label").hidden = !about.weighted;
}

function fill(name, values) {
  at(`${name}-label`).hidden = values.length === 0;
  const kept = at(name).value;
  at(name).replaceChildren(...values.map((value) => element("option", {}, value)));
  if (values.includes(kept)) at(name).value = kept;
}

async function show(id, kind) {
  const mine = (shown = { id, kind });
  try {
    const found = await ask(`/nodes/${encodeURIComponent(id)}${query(kind)}`);
    if (mine !== shown) return;
    problem(null);
    at("found").hidden = false;
    at("title").textContent = kind ? `${kind} ${id}` : id;
    const reversed = kind && at("relation").value.endsWith(`-${kind}`) &&
      !at("relation").value.startsWith(`${kind}-`); // such nodes are targets
    at(reversed ? "target" : "source").value = id;
    at(reversed ? "source" : "target").value = "";
    showPrediction(found);
    at("computed").textContent = predicted(found)
      ? `Computed ${new Date(found.computed).toLocaleString()}, exact.` : "";
    draw(id, kind, found.neighbours || []);
    await Promise.all([explain(mine, found), recommend(mine)]);
  } catch (error) {
    if (mine === shown) problem(error);
  }
}

const predicted = (found) => found.value !== undefined || found.probabilities !== undefined;

function showPrediction(found) {
  const place = at("prediction");
  place.replaceChildren();
  if (found.value !== undefined) {
    place.append(element("p", { class: "value", id: "label" }, number(found.value)));
  } else if (found.probabilities) {
    const label = found.label === undefined ? (found.labels || []).join(", ") || "none" : found.label;
    place.append(element("p", { class: "value", id: "label" }, String(label)));
    const ordered = Object.entries(found.probabilities).sort((a, b) => b[1] - a[1]);
    for (const [name, share] of ordered.slice(0, 8)) {
      const bar = element("progress", { max: 1, value: share, "aria-label": name });
      const text = `${(100 * share).toFixed(1)}%`;
      place.append(element("div", { class: "bar" }, element("span", {}, name), bar, text));
    }
  } else if (about.task === "pairs") {
    place.append(element("p", {}, "This model scores pairs: see what it recommends."));
  } else {
    const kinds = about.predicted.join(", ");
    place.append(element("p", {}, `The model predicts nodes of kind ${kinds}. See the neighbours.`));
  }
}

function draw(id, kind, neighbours) {
  const some = neighbours.slice(0, 12);
  const most = Math.max(...some.map((each) => Math.abs(each.effect)), 1e-12);
  const picture = drawn("svg", { viewBox: "0 0 400 300", role: "img" });
  picture.append(drawn("title", {}, `${id} and ${some.length} of its neighbours`));
  at("legend").hidden = !some.some((each) => each.effect !== null);
  some.forEach((each, place) => {
    const name = each.kind ? `${each.kind} ${each.id}` : String(each.id);
    const angle = (2 * Math.PI * place) / some.length - Math.PI / 2;
    const [x, y] = [200 + 140 * Math.cos(angle), 150 + 110 * Math.sin(angle)];
    const colour = each.effect > 0 ? "#1864ab" : each.effect < 0 ? "#d9480f" : "#adb8c2";
    const width = 1 + (5 * Math.abs(each.effect)) / most;
    picture.append(drawn("line", { x1: 200, y1: 150, x2: x, y2: y, stroke: colour, "stroke-width": width }));
    const link = drawn("a", { href: "#" },
      drawn("circle", { cx: x, cy: y, r: 9, fill: "#fff", stroke: colour, "stroke-width": 2 }),
      drawn("text", { x, y: y + 22, "text-anchor": "middle" }, short(name)),
      drawn("title", {}, each.effect === null ? name : `${name}: ${signed(each.effect)}`));
    link.addEventListener("click", (event) => {
      event.preventDefault();
      at("id").value = each.id;
      if (each.kind) at("kind").value = each.kind;
      show(each.id, each.kind || kind);
    });
    picture.append(link);
  });
  picture.append(drawn("circle", { cx: 200, cy: 150, r: 13, fill: "#1c2733" }));
  const name = kind ? `${kind} ${id}` : id;
  picture.append(drawn("text", { x: 200, y: 178, "text-anchor": "middle" }, short(name)));
  at("picture").replaceChildren(some.length ? picture : element("p", {}, "It has no neighbours."));
}

const short = (text) => (String(text).length > 16 ? `${String(text).slice(0, 15)}…` : String(text));

async function explain(mine, found) {
  at("effects").replaceChildren();
  at("explained").textContent = "Computing…";
  if (about.task === "pairs") {
    at("explained").textContent = "Explanations are for predictions of single nodes.";
    return;
  }
  if (!predicted(found)) {
    at("explained").textContent = "It has no prediction.";
    return;
  }
  const why = await ask(`/explain/${encodeURIComponent(mine.id)}${query(mine.kind)}`);
  if (mine !== shown) return;
  const what = why.predicted === null ? "The value" : `The probability of ${why.predicted}`;
  at("explained").textContent =
    `${what} is ${number(why.value)}. ${why.note ? `(${why.note}.) ` : ""}` +
    `Each part below is left out on its own.`;
  at("effects").append(...table("neighbours", why.neighbours), ...table("columns", why.columns));
}

function table(name, sort) {
  if (!sort.looked_at) return [];
  const rows = sort.effects.slice(0, 8).map((each) =>
    element("tr", {},
      element("td", {}, `without ${each.what}`),
      element("td", { class: each.change < 0 ? "supports" : "opposes" }, signed(each.change))));
  const head = element("tr", {}, element("th", {}, `of its ${name}`), element("th", {}, "change"));
  const seen = sort.looked_at < sort.there ? `${sort.looked_at} of ${sort.there}` : "all";
  const note = `Sum over ${seen} ${name} ${signed(sort.total)}; ` +
    `left out together ${signed(sort.together)}.`;
  return [element("table", {}, head, ...rows), element("p", { class: "quiet" }, note)];
}

async function recommend(mine) {
  const asked = about.task === "pairs" && (mine.kind || null) === about.source_kind;
  at("partners").hidden = !asked;
  if (!asked) return;
  const found = await ask(`/recommend/${encodeURIComponent(mine.id)}?k=10`);
  if (mine !== shown) return;
  at("recommended").replaceChildren(
    ...found.recommended.map((each) => {
      const name = each.kind ? `${each.kind} ${each.id}` : String(each.id);
      return element("li", {}, `${name} (${number(each.score)})`);
    }));
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!about.nodes) start();
  show(at("id").value, kindOf());
});

at("edge").addEventListener("submit", async (event) => {
  event.preventDefault();
  const remove = event.submitter && event.submitter.name === "remove";
  const edge = { source: at("source").value, target: at("target").value };
  if (!remove && !at("weight-label").hidden) edge.weight = Number(at("weight").value);
  const edges = [edge];
  const relation = at("relation-label").hidden ? {} : { relation: at("relation").value };
  try {
    const done = await ask("/edges", {
      method: remove ? "DELETE" : "POST",
      body: JSON.stringify({ edges, ...relation }),
    });
    problem(null);
    at("changed").textContent =
      `Change ${done.change}: the edge is ${remove ? "removed" : "there"}; ` +
      `${done.rows.toLocaleString("en")} rows were computed anew.`;
    start();
    if (shown) show(shown.id, shown.kind);
  } catch (error) {
    problem(error);
  }
});

start();
