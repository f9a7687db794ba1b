"use strict";
// Where the boxes of a graph stand: modules as a tree, each opened one drawn in layers, its inside first.
// Nothing here touches a page.

const MOST = 100; // boxes that a module shows; more are put into parts in the order of execution
const DEEPEST = 24; // bodies and modules inside each other
const ROOM = { x: 18, y: 34, pad: 14, head: 30, port: 10 };

// A tree of groups (modules, bodies, parts) and leaves (nodes, inputs and outputs of the file).
// A leaf has `node`, or `value` where it is an input or an output; `first` is its place in the order of execution.
function buildTree(data) {
  const root = newGroup("", "", null);
  const leaves = [];
  const state = { data, root, leaves, order: 0 };
  for (const value of data.graph.inputs) addEnd(state, root, value, "input");
  addNodes(state, data.graph, root, "");
  for (const value of data.graph.outputs) addEnd(state, root, value, "output");
  tidy(root, data);
  return { root, leaves, edges: connect(leaves) };
}

function newGroup(key, label, parent) {
  return { key, label, parent, path: null, items: [], open: false, first: Infinity, count: 0 };
}

function addEnd(state, group, value, kind) {
  const [name] = state.data.values[value];
  const reads = kind === "output" ? [value] : [];
  const gives = kind === "input" ? [value] : [];
  addLeaf(state, group, { key: `${group.key}|${kind} ${name}`, label: name, kind, value, reads, gives });
}

function addLeaf(state, group, leaf) {
  leaf.parent = group;
  leaf.first = state.order++;
  group.items.push(leaf);
  state.leaves.push(leaf);
}

// `scope` tells the values of one call of a function from those of another.
function addNodes(state, graph, base, prefix, scope = "") {
  const { data } = state;
  const groups = new Map([[prefix, base]]);
  function groupOf(path) {
    if (!path || path === prefix || (prefix && !path.startsWith(`${prefix}.`))) return base;
    if (groups.has(path)) return groups.get(path);
    const cut = path.lastIndexOf(".");
    const parent = groupOf(cut < 0 ? "" : path.slice(0, cut));
    const group = newGroup(`${base.key}/${path}`, path.slice(cut + 1), parent);
    group.path = path;
    parent.items.push(group);
    groups.set(path, group);
    return group;
  }
  graph.nodes.forEach((node, i) => {
    const [op, , module, inputs, outputs, , , bodies] = node;
    const path = data.modules[module];
    const group = groupOf(path);
    const key = `${base.key}#${i}`;
    const reads = inputs.map((value) => scoped(value, scope));
    const gives = outputs.map((value) => scoped(value, scope));
    const inner = bodies ?? (data.functions[op] ? [["", data.functions[op]]] : []);
    if (inner.length === 0 || depthOf(base) > DEEPEST) {
      addLeaf(state, group, { key, label: op, kind: "node", node, path, reads, gives });
      return;
    }
    const call = Object.assign(newGroup(key, op, group), { node, path, kind: "call", reads, gives });
    group.items.push(call);
    for (const [label, body] of inner) addBody(state, call, label, body, bodies ? scope : key);
  });
}

// The body of If, Loop, Scan or a function: its inputs are fed by its node's, its outputs feed its node's.
function addBody(state, call, label, body, scope) {
  const group = label ? newGroup(`${call.key}:${label}`, label, call) : call;
  if (label) call.items.push(group);
  const end = (kind, named, reads, gives) => {
    const key = `${group.key}|${kind} ${group.items.length}`;
    addLeaf(state, group, { key, label: state.data.values[bare(named)][0], kind, value: named, reads, gives });
  };
  call.reads.forEach((source, i) => {
    const value = scoped(body.inputs[i] ?? -1, scope);
    if (bare(source) >= 0) end("input", bare(value) >= 0 ? value : source, [source], [value]); // an If's condition has none
  });
  body.inputs.slice(call.reads.length).forEach((value) => end("input", value, [], [scoped(value, scope)]));
  addNodes(state, body, group, call.path, scope);
  const first = call.label === "Loop" ? 1 : 0; // a Loop's body gives its condition first
  body.outputs.forEach((value, i) => end("output", value, [scoped(value, scope)], [call.gives[i - first] ?? -1]));
}

const scoped = (value, scope) => (scope && value >= 0 ? `${scope}:${value}` : value);
const bare = (value) => (typeof value === "string" ? Number(value.slice(value.lastIndexOf(":") + 1)) : value);

function depthOf(group) {
  let depth = 0;
  for (let at = group; at; at = at.parent) depth++;
  return depth;
}

// Counts, puts a module of one node in that node's place, and many boxes into parts.
function tidy(group, data) {
  for (const item of group.items) if (item.items) tidy(item, data);
  group.items = group.items.map((item) => (isSingle(item) ? lift(item, group) : item));
  for (const item of group.items) {
    group.first = Math.min(group.first, item.first);
    group.count += item.items ? item.count : item.kind === "node";
  }
  group.count += group.kind === "call";
  group.items.sort((a, b) => a.first - b.first);
  split(group);
}

const isSingle = (item) => item.items && item.path !== null && item.kind !== "call" && item.items.length === 1 && !item.items[0].items;

function lift(group, parent) {
  const [leaf] = group.items;
  leaf.parent = parent;
  leaf.module = group.label;
  return leaf;
}

function split(group) {
  while (group.items.length > MOST) {
    const parts = [];
    const size = MOST / 2;
    const many = Math.ceil(group.items.length / size);
    for (let at = 0; at < group.items.length; at += size) {
      const part = newGroup(`${group.key}~${many}.${at}`, `part ${parts.length + 1} of ${many}`, group);
      part.items = group.items.slice(at, at + size);
      part.first = part.items[0].first;
      for (const item of part.items) {
        item.parent = part;
        part.count += item.items ? item.count : item.kind === "node";
      }
      parts.push(part);
    }
    group.items = parts;
  }
}

// Edges between leaves, by the values that they give and read.
function connect(leaves) {
  const makers = new Map();
  for (const leaf of leaves) for (const value of leaf.gives) if (bare(value) >= 0) listIn(makers, value).push(leaf);
  const edges = [];
  for (const leaf of leaves) {
    for (const value of new Set(leaf.reads)) {
      for (const maker of makers.get(value) ?? []) if (maker !== leaf) edges.push({ from: maker, to: leaf, value });
    }
  }
  return edges;
}

function listIn(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

// For each group: the edges between its own items, and those that come in and go out at its border.
function liftEdges(edges, root) {
  const lifted = new Map();
  const of = (group) => lifted.get(group) ?? lifted.set(group, { inside: new Map(), ins: new Map(), outs: new Map() }).get(group);
  const chainOf = (leaf) => {
    const chain = [leaf];
    for (let at = leaf.parent; at; at = at.parent) chain.push(at);
    return chain;
  };
  for (const { from, to, value } of edges) {
    const [a, b] = [chainOf(from), chainOf(to)];
    let shared = 0;
    while (shared < Math.min(a.length, b.length) && a[a.length - 1 - shared] === b[b.length - 1 - shared]) shared++;
    const [i, j] = [a.length - shared, b.length - shared]; // a[i] === b[j] is the innermost group that holds both
    const inside = of(a[i]).inside;
    const key = `${a[i - 1].key}\n${b[j - 1].key}\n${value}`;
    if (!inside.has(key)) inside.set(key, { from: a[i - 1], to: b[j - 1], value });
    for (let k = 1; k < j; k++) note(of(b[k]).ins, value, b[k - 1]);
    for (let k = 1; k < i; k++) note(of(a[k]).outs, value, a[k - 1]);
  }
  return of;
}

function note(ports, value, item) {
  (ports.get(value) ?? ports.set(value, new Set()).get(value)).add(item);
}

// Places everything; `measure` gives the width of a text. Boxes and frames have x, y, w, h; lines are lists of points.
function layout(tree, measure) {
  const of = liftEdges(tree.edges, tree.root);
  const drawn = place(tree.root, of, measure);
  const boxes = [];
  const lines = [];
  flatten(drawn, 0, 0, boxes, lines);
  return { w: drawn.w, h: drawn.h, boxes, lines };
}

function sizeOf(item, of, measure) {
  if (item.items && item.open) return place(item, of, measure);
  const lines = linesOf(item);
  return { item, w: Math.max(40, ...lines.map(measure)) + 20, h: 14 + 15 * lines.length };
}

function linesOf(item) {
  if (!item.items) return [item.label, item.module].filter(Boolean);
  const kind = item.kind === "call" ? "" : item.class;
  return [item.label, [kind, `${item.count} ${item.count === 1 ? "node" : "nodes"}`].filter(Boolean).join(", ")];
}

const titleOf = (group) => `\u2212 ${linesOf(group).filter(Boolean).join(", ")}`; // of an open one

// One open group: its items in layers, between ports for what comes in above and what goes out below.
function place(group, of, measure) {
  const { inside, ins, outs } = of(group);
  const cells = new Map(); // by item: its cell
  const all = group.items.map((item) => {
    const cell = { ...sizeOf(item, of, measure), item, up: [], down: [] };
    cells.set(item, cell);
    return cell;
  });
  all.forEach((cell, i) => (cell.number = i));
  const links = [];
  const inPorts = portsOf(ins, "in");
  const outPorts = portsOf(outs, "out");
  [...inPorts, ...outPorts].forEach((port, i) => (port.number = all.length + i));
  for (const { from, to, value } of inside.values()) {
    const [a, b] = [cells.get(from), cells.get(to)];
    links.push(a.number < b.number ? { a, b, value } : { a, b, value, back: true });
  }
  for (const port of inPorts) for (const item of port.items) links.push({ a: port, b: cells.get(item), value: port.value });
  for (const port of outPorts) for (const item of port.items) links.push({ a: cells.get(item), b: port, value: port.value });
  const forward = merge(links.filter((link) => !link.back));
  const back = merge(links.filter((link) => link.back));
  rank(all, forward, inPorts, outPorts);
  const layers = inLayers([...inPorts, ...all, ...outPorts], forward);
  orderLayers(layers);
  const width = placeAcross(layers);
  const height = placeDown(layers);
  const head = group.parent ? ROOM.head : 0;
  const w = Math.max(width + 2 * ROOM.pad, group.parent ? measure(titleOf(group)) + 30 : 0);
  const shift = { x: (w - width) / 2, y: head + (inPorts.length ? 0 : ROOM.pad) };
  for (const cell of layers.flat()) {
    cell.x += shift.x;
    cell.y += shift.y;
  }
  const ports = { in: new Map(), out: new Map() };
  for (const [side, list] of [["in", inPorts], ["out", outPorts]]) for (const port of list) for (const value of port.values) ports[side].set(value, port.x + port.w / 2);
  const h = height + head + (inPorts.length ? 0 : ROOM.pad) + (outPorts.length ? 0 : ROOM.pad);
  for (const port of inPorts) port.y = 0; // the border itself
  for (const port of outPorts) port.y = h;
  return { item: group, w, h, cells: all, lines: [...forward.map((link) => route(link)), ...back.map((link) => routeBack(link))], ports, open: true, head };
}

// One port for each value at the border; all in one where they are many.
function portsOf(ports, side) {
  const list = [...ports].map(([value, items]) => ({ side, value, values: [value], items, w: ROOM.port, h: 0, up: [], down: [], port: true }));
  if (list.length <= 8) return list;
  const items = new Set(list.flatMap((port) => [...port.items]));
  return [{ ...list[0], values: list.map((port) => port.value), items, up: [], down: [] }];
}

// Links between the same two cells are drawn as one, unless they end at different ports of an open group.
function merge(links) {
  const found = new Map();
  for (const link of links) {
    link.out = link.a.ports?.out.get(link.value);
    link.in = link.b.ports?.in.get(link.value);
    const key = `${link.a.number} ${link.b.number} ${link.out} ${link.in}`;
    const there = found.get(key);
    if (there) there.values.push(link.value);
    else found.set(key, { ...link, values: [link.value] });
  }
  return [...found.values()];
}

function rank(all, links, inPorts, outPorts) {
  for (const cell of all) cell.rank = 1;
  for (const port of inPorts) port.rank = 0;
  const from = new Map();
  const into = new Map();
  for (const link of links) {
    listIn(from, link.a).push(link.b);
    listIn(into, link.b).push(link.a);
  }
  for (const cell of all) for (const next of from.get(cell) ?? []) if (!next.port) next.rank = Math.max(next.rank, cell.rank + 1);
  for (const cell of [...all].reverse()) {
    // what nothing precedes stands just above what reads it
    const next = (from.get(cell) ?? []).filter((other) => !other.port);
    if (next.length && !(into.get(cell) ?? []).length) cell.rank = Math.max(1, Math.min(...next.map((other) => other.rank)) - 1);
  }
  const last = Math.max(0, ...all.map((cell) => cell.rank)) + 1;
  for (const cell of all) if (cell.item.kind === "output" && !(from.get(cell) ?? []).length) cell.rank = last - 1;
  for (const port of outPorts) port.rank = last;
}

// Layers from the top; a link over several of them passes a bend in each, which the links of one value share.
function inLayers(cells, links) {
  const layers = [];
  const put = (cell) => (layers[cell.rank] ??= []).push(cell);
  cells.forEach(put);
  const chains = new Map();
  for (const link of links) {
    link.path = [link.a];
    let at = link.a;
    for (let rank = link.a.rank + 1; rank < link.b.rank; rank++) {
      const key = `${link.a.number} ${link.out} ${link.values[0]} ${rank}`;
      let bend = chains.get(key);
      if (!bend) {
        bend = { bend: true, rank, w: 6, h: 0, up: [], down: [] };
        chains.set(key, bend);
        put(bend);
        join(at, bend, link);
      }
      link.path.push(bend);
      at = bend;
    }
    join(at, link.b, link);
    link.path.push(link.b);
  }
  return [...layers].map((layer) => layer ?? []);
}

function join(a, b, link) {
  const from = a === link.a && link.out !== undefined ? link.out - a.w / 2 : 0;
  const to = b === link.b && link.in !== undefined ? link.in - b.w / 2 : 0;
  a.down.push({ cell: b, here: from, there: to });
  b.up.push({ cell: a, here: to, there: from });
}

// The order inside each layer by the mean place of what a cell is linked with; the best order that was met is kept.
function orderLayers(layers) {
  const number = () => layers.forEach((layer) => layer.forEach((cell, i) => (cell.place = i)));
  number();
  let best = layers.map((layer) => [...layer]);
  let least = crossings(layers);
  for (let round = 0; round < 8 && least > 0; round++) {
    const down = round % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const cell of layer) {
        const near = down ? cell.up : cell.down;
        cell.weight = near.length ? near.reduce((sum, link) => sum + link.cell.place, 0) / near.length : cell.place;
      }
      layer.sort((a, b) => a.weight - b.weight || a.place - b.place);
      layer.forEach((cell, i) => (cell.place = i));
    }
    const now = crossings(layers);
    if (now < least) [least, best] = [now, layers.map((layer) => [...layer])];
  }
  layers.forEach((layer, i) => layer.splice(0, layer.length, ...best[i]));
  number();
}

function crossings(layers) {
  let count = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((cell) => cell.down.map((link) => [cell.place, link.cell.place]));
    if (ends.length > 400) return 1e9; // too many to count each time; the last order is taken
    for (let i = 0; i < ends.length; i++) for (let j = 0; j < i; j++) count += (ends[i][0] - ends[j][0]) * (ends[i][1] - ends[j][1]) < 0;
  }
  return count;
}

// Each layer in turn takes the places nearest to what it is linked with that keep its order and distances.
function placeAcross(layers) {
  for (const layer of layers) {
    let x = 0;
    for (const cell of layer) {
      cell.x = x;
      x += cell.w + ROOM.x;
    }
    for (const cell of layer) cell.x -= x / 2;
  }
  for (let round = 0; round < 8; round++) {
    const down = round % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wanted = layer.map((cell) => {
        const near = (down ? cell.up : cell.down).concat(round > 5 ? (down ? cell.down : cell.up) : []);
        if (!near.length) return cell.x + cell.w / 2;
        return near.reduce((sum, link) => sum + link.cell.x + link.cell.w / 2 + link.there - link.here, 0) / near.length;
      });
      spread(layer, wanted);
    }
  }
  const left = Math.min(...layers.flat().map((cell) => cell.x));
  let right = left;
  for (const cell of layers.flat()) right = Math.max(right, cell.x + cell.w);
  for (const cell of layers.flat()) cell.x -= left;
  return right - left;
}

// Least squares under distances: cells that would overlap move as one block to the mean of their wishes.
function spread(layer, wanted) {
  const blocks = [];
  let offset = 0;
  layer.forEach((cell, i) => {
    if (i) offset += (layer[i - 1].w + cell.w) / 2 + ROOM.x;
    const weight = cell.bend ? 3 : 1;
    let block = { from: i, sum: weight * (wanted[i] - offset), weight };
    while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = { from: last.from, sum: last.sum + block.sum, weight: last.weight + block.weight };
    }
    blocks.push(block);
    cell.offset = offset;
  });
  blocks.forEach((block, i) => {
    const end = blocks[i + 1]?.from ?? layer.length;
    for (let at = block.from; at < end; at++) layer[at].x = block.sum / block.weight + layer[at].offset - layer[at].w / 2;
  });
}

function placeDown(layers) {
  let y = 0;
  let drawn = 0;
  for (const layer of layers) {
    if (!layer.length) continue;
    const height = Math.max(...layer.map((cell) => cell.h));
    if (drawn++) y += ROOM.y;
    for (const cell of layer) {
      if (cell.bend) cell.h = height;
      cell.y = y + (height - cell.h) / 2;
    }
    y += height;
  }
  return y;
}

function route(link) {
  const points = [];
  link.path.forEach((cell, i) => {
    const x = cell.x + (i === 0 && link.out !== undefined ? link.out : i === link.path.length - 1 && link.in !== undefined ? link.in : cell.w / 2);
    if (i > 0) points.push([x, cell.y]);
    if (i < link.path.length - 1) points.push([x, cell.y + cell.h]);
  });
  return { points, values: link.values, tip: !link.b.port };
}

// Against the order, as where a module is called twice: around the right side.
function routeBack(link) {
  const [a, b] = [link.a, link.b];
  const side = Math.max(a.x + a.w, b.x + b.w) + 12;
  const [from, to] = [a.x + (link.out ?? a.w / 2), b.x + (link.in ?? b.w / 2)];
  return { points: [[from, a.y + a.h], [side, a.y + a.h + 14], [side, b.y - 14], [to, b.y]], values: link.values, tip: true, back: true };
}

function flatten(drawn, x, y, boxes, lines) {
  if (drawn.item.parent) boxes.push({ item: drawn.item, x, y, w: drawn.w, h: drawn.h, open: Boolean(drawn.open) });
  for (const line of drawn.lines ?? []) lines.push({ ...line, points: line.points.map(([a, b]) => [a + x, b + y]) });
  for (const cell of drawn.cells ?? []) flatten(cell, cell.x + x, cell.y + y, boxes, lines);
}

// Opens every group around an item.
function openTo(item) {
  for (let at = item.parent; at; at = at.parent) at.open = true;
}

// Opens a group, and the group inside where it holds that one alone.
function openGroup(group) {
  group.open = true;
  if (group.items.length === 1 && group.items[0].items) openGroup(group.items[0]);
}

if (typeof module !== "undefined") module.exports = { buildTree, layout, openTo, openGroup };
