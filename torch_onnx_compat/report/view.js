"use strict";
// Draws the whole graph: modules open and close by a click, the picture moves and zooms, a search finds nodes.

const READABLE = 0.75; // the least zoom at which labels are read
const SVG = "http://www.w3.org/2000/svg";

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function element(name, attributes = {}, ...children) {
  const made = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function button(text, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

function measurer() {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  return (text) => pen.measureText(text).width;
}

class View {
  constructor(place, data) {
    this.data = data;
    this.tree = buildTree(data);
    this.measure = measurer();
    this.byKey = new Map();
    this.numbers = new Map(data.modules.map((path, i) => [path, i]));
    this.changed = new Set(data.changed);
    this.wrong = new Set(data.wrong);
    this.mark(this.tree.root);
    this.zoom = { k: 1, x: 0, y: 0 };
    this.found = [];
    this.build(place);
    openGroup(this.tree.root);
    this.draw();
    this.listen();
    new ResizeObserver(() => this.kept || this.fit(READABLE)).observe(this.svg);
  }

  // What is changed, wrong or refused, from the nodes up.
  mark(group) {
    for (const item of group.items) {
      this.byKey.set(item.key, item);
      const at = this.numbers.get(item.path) ?? -1;
      const mine = item.items ? item.kind !== "call" : item.module;
      item.class = mine && at >= 0 ? this.data.classes[at] : "";
      item.marks = new Set();
      if (item.node?.[6]) item.marks.add("refused");
      if (at > 0 && this.changed.has(at)) item.marks.add("changed");
      if (at > 0 && this.wrong.has(at)) item.marks.add("wrong");
      if (item.items) this.mark(item);
      for (const mark of item.marks) for (let up = group; up.marks; up = up.parent) if (mark !== "changed") up.marks.add(mark);
    }
  }

  build(place) {
    this.search = element("input", { type: "search", autocomplete: "off" });
    this.count = element("output");
    this.bar = element(
      "form",
      { class: "tools" },
      element("label", {}, "find a node ", this.search),
      button("Previous", () => this.next(-1)),
      button("Next", () => this.next(1)),
      this.count,
      element(
        "div",
        { class: "buttons", role: "group", "aria-label": "View" },
        button("+", () => this.scale(1.4), { "aria-label": "Zoom in" }),
        button("\u2212", () => this.scale(1 / 1.4), { "aria-label": "Zoom out" }),
        button("Fit", () => this.fit(0)),
        button("Close all", () => this.closeAll()),
        (this.wide = button("Whole window", () => this.toggleWide(), { "aria-pressed": "false" })),
      ),
    );
    this.scene = element("svg:g");
    const tip = element("svg:marker", { id: "tip", markerUnits: "userSpaceOnUse", refX: "7", refY: "4", markerWidth: "8", markerHeight: "8", orient: "auto" });
    tip.append(element("svg:path", { d: "M0 1l7 3l-7 3z", class: "tip" }));
    this.svg = element("svg:svg", { role: "group", "aria-label": "The graph. Arrow keys go from box to box, Enter opens and closes a module." });
    this.svg.append(element("svg:defs", {}, tip), this.scene);
    this.told = element("div", { class: "told", role: "region", "aria-label": "What is chosen", tabindex: "0" });
    this.tell(null);
    this.place = place;
    place.append(this.bar, element("div", { class: "sheet" }, this.svg, this.told));
  }

  draw() {
    const drawn = layout(this.tree, this.measure);
    this.size = drawn;
    const boxes = drawn.boxes.map((box) => this.box(box));
    const lines = drawn.lines.map((line) => this.line(line));
    const frames = boxes.filter((_, i) => drawn.boxes[i].open);
    this.scene.replaceChildren(...frames, ...lines, ...boxes.filter((_, i) => !drawn.boxes[i].open));
    this.elements = new Map(drawn.boxes.map((box, i) => [box.item.key, { box, element: boxes[i] }]));
    this.choose(this.chosen && this.elements.has(this.chosen.key) ? this.chosen : null, false);
  }

  box({ item, x, y, w, h, open }) {
    const lines = linesOf(item);
    const kind = item.items ? (open ? "frame" : "module") : item.kind;
    const made = element("svg:g", {
      class: ["box", kind, ...item.marks].join(" "),
      role: "button",
      tabindex: "-1",
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
      "aria-expanded": item.items ? String(open) : undefined,
      "aria-label": [lines.join(" "), kindOf(item), ...item.marks].filter(Boolean).join(", "),
    });
    const head = open ? ROOM.head : h;
    made.append(element("svg:rect", { width: w.toFixed(1), height: h.toFixed(1), rx: item.items ? 6 : 12 }));
    if (open) {
      made.append(element("svg:text", { x: 12, y: 20 }, titleOf(item)));
    } else {
      lines.forEach((text, i) => {
        const at = { x: (w / 2).toFixed(1), y: (head / 2 + 4 + (i - (lines.length - 1) / 2) * 15).toFixed(1), "text-anchor": "middle" };
        made.append(element("svg:text", i ? { ...at, class: "second" } : at, i < lines.length - 1 ? `${text} ` : text));
      });
    }
    made.addEventListener("click", () => this.moved || this.act(item));
    made.addEventListener("focus", () => this.choose(item, false));
    return made;
  }

  line({ points, values, tip, back }) {
    let path = `M${points[0].map((n) => n.toFixed(1)).join(" ")}`;
    for (let i = 1; i < points.length; i++) {
      const [[a, b], [c, d]] = [points[i - 1], points[i]];
      const middle = ((b + d) / 2).toFixed(1);
      path += Math.abs(a - c) < 0.5 ? `V${d.toFixed(1)}` : `C${a.toFixed(1)} ${middle} ${c.toFixed(1)} ${middle} ${c.toFixed(1)} ${d.toFixed(1)}`;
    }
    const made = element("svg:path", { class: back ? "edge back" : "edge", d: path, "marker-end": tip ? "url(#tip)" : undefined });
    made.append(element("svg:title", {}, values.map((value) => this.nameOf(value)).join("\n")));
    made.values = values;
    return made;
  }

  nameOf(value) {
    const [name, type] = this.data.values[bare(value)] ?? ["", 0];
    return [name, this.data.types[type]].filter(Boolean).join(": ");
  }

  // Opens or closes a module, which stays where it is on the screen; of anything else tells what it is.
  act(item) {
    if (item.items) {
      const before = this.elements.get(item.key).box;
      if (item.open) item.open = false;
      else openGroup(item);
      this.draw();
      const after = this.elements.get(item.key).box;
      this.zoom.x += (before.x - after.x) * this.zoom.k;
      this.zoom.y += (before.y - after.y) * this.zoom.k;
      this.kept = true;
      this.move();
    }
    this.choose(item, true);
  }

  choose(item, focus) {
    this.chosen = item;
    for (const { element: made } of this.elements.values()) {
      made.classList.remove("chosen");
      made.setAttribute("tabindex", "-1");
    }
    const first = this.elements.get(item?.key) ?? this.elements.values().next().value;
    first?.element.setAttribute("tabindex", "0");
    const mine = new Set(item ? [...(item.reads ?? []), ...(item.gives ?? [])].filter((value) => bare(value) >= 0) : []);
    for (const line of this.scene.querySelectorAll(".edge")) line.classList.toggle("chosen", line.values.some((value) => mine.has(value)));
    if (item) first.element.classList.add("chosen");
    if (focus) first.element.focus({ preventScroll: true });
    this.tell(item);
  }

  // What is known of a box, with ways to what it reads and to what reads it.
  tell(item) {
    if (!item) {
      const meanings = { changed: "Blue: changed by an entry.", wrong: "Red: off by more than rounding explains.", refused: "Red: not run right by the target." };
      const seen = Object.keys(meanings).filter((mark) => [...this.byKey.values()].some((one) => one.marks.has(mark)));
      this.told.replaceChildren(...seen.map((mark) => element("p", {}, meanings[mark])), element("p", {}, "Click a module to open it, a node to see what it reads and gives. Drag to move; pinch, or turn the wheel with Ctrl held, to zoom."));
      return;
    }
    const rows = [];
    const say = (name, ...what) => what.some(Boolean) && rows.push(element("dt", {}, name), element("dd", {}, ...what));
    say("name", item.node?.[1] ?? "");
    say("module", item.path ?? "");
    say("class", item.class);
    say("attributes", item.node?.[5] ?? "");
    say("refused", item.node?.[6] ?? "");
    if (item.marks.has("changed")) say("changed", "by an entry of the catalogue");
    if (item.marks.has("wrong")) say("off", "by more than rounding explains, here or inside");
    if (item.items) say("holds", countsOf(item));
    for (const value of item.kind === "input" ? [] : (item.reads ?? [])) say("reads", ...this.ends(value, this.makers(value)));
    for (const value of item.kind === "output" ? [] : (item.gives ?? [])) say("gives", ...this.ends(value, this.readers(value)));
    if (item.kind === "input" || item.kind === "output") say(item.kind, this.nameOf(item.value));
    this.told.replaceChildren(element("h3", {}, [kindOf(item), item.label].filter(Boolean).join(" ")), element("dl", {}, ...rows));
  }

  ends(value, leaves) {
    if (bare(value) < 0) return [];
    const links = leaves.slice(0, 6).map((leaf) => button(leaf.label, () => this.show(leaf), { "aria-label": `Go to ${leaf.label}` }));
    const more = leaves.length > 6 ? [` and ${leaves.length - 6} more`] : [];
    const kind = this.data.values[bare(value)][2] === 2 ? "constant " : "";
    return [`${kind}${this.nameOf(value)} `, ...links, ...more];
  }

  makers(value) {
    return this.tree.leaves.filter((leaf) => leaf.gives.includes(value));
  }

  readers(value) {
    return this.tree.leaves.filter((leaf) => leaf.reads.includes(value));
  }

  // Opens the modules around a leaf and brings it to the middle.
  show(leaf) {
    openTo(leaf);
    this.draw();
    const { box } = this.elements.get(leaf.key);
    const { width, height } = this.svg.getBoundingClientRect();
    this.zoom.k = Math.max(this.zoom.k, 0.8);
    this.zoom.x = width / 2 - (box.x + box.w / 2) * this.zoom.k;
    this.zoom.y = height / 2 - (box.y + box.h / 2) * this.zoom.k;
    this.kept = true;
    this.move();
    this.choose(leaf, false);
  }

  // Shows the next node that was searched for, or with step -1 the one before; after the last comes the first.
  next(step) {
    const wanted = this.search.value.trim().toLowerCase();
    if (wanted !== this.wanted) {
      this.wanted = wanted;
      this.found = wanted ? this.tree.leaves.filter((leaf) => this.textOf(leaf).includes(wanted)) : [];
      this.at = step > 0 ? -1 : this.found.length;
    }
    if (this.found.length) {
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.show(this.found[this.at]);
    }
    this.count.textContent = !wanted ? "" : this.found.length ? `${this.at + 1} of ${this.found.length}` : "none";
  }

  textOf(leaf) {
    const values = leaf.kind === "node" ? leaf.gives.map((value) => this.nameOf(value)) : [];
    return [leaf.label, leaf.node?.[1], leaf.path, ...values].join(" ").toLowerCase();
  }

  closeAll() {
    const close = (group) => {
      group.open = false;
      for (const item of group.items) if (item.items) close(item);
    };
    close(this.tree.root);
    openGroup(this.tree.root);
    this.draw();
    this.fit(READABLE);
  }

  toggleWide() {
    const wide = this.place.classList.toggle("wide");
    this.wide.setAttribute("aria-pressed", String(wide));
    document.body.classList.toggle("covered", wide);
    // What lies under the picture is out of reach for the keyboard, too.
    for (let at = this.place; at !== document.body; at = at.parentElement) for (const other of at.parentElement.children) if (other !== at) other.inert = wide;
    this.fit(READABLE);
  }

  // All of it, or its top where it would be smaller than `least`.
  fit(least) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return;
    const k = Math.min(width / (this.size.w + 20), height / (this.size.h + 20), 1.2);
    this.zoom.k = Math.max(k, least);
    this.zoom.x = (width - this.size.w * this.zoom.k) / 2;
    this.zoom.y = Math.max((height - this.size.h * this.zoom.k) / 2, 10);
    this.kept = false;
    this.move();
  }

  scale(factor, at) {
    const { width, height } = this.svg.getBoundingClientRect();
    const [x, y] = at ?? [width / 2, height / 2];
    const k = Math.min(Math.max(this.zoom.k * factor, 0.02), 4);
    this.zoom = { k, x: x - ((x - this.zoom.x) * k) / this.zoom.k, y: y - ((y - this.zoom.y) * k) / this.zoom.k };
    this.kept = true;
    this.move();
  }

  move() {
    const { k, x, y } = this.zoom;
    this.scene.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
  }

  listen() {
    const pointers = new Map();
    const local = (event) => {
      const { left, top } = this.svg.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    this.svg.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, local(event));
      this.moved = false;
    });
    this.svg.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const now = local(event);
      if (!this.moved && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4) return;
      if (!this.moved) this.svg.setPointerCapture(event.pointerId);
      this.moved = this.kept = true;
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      this.zoom.x += (now[0] - before[0]) / (other ? 2 : 1);
      this.zoom.y += (now[1] - before[1]) / (other ? 2 : 1);
      if (other) {
        const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
        this.scale(apart(now, other) / Math.max(apart(before, other), 1), [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
      }
      pointers.set(event.pointerId, now);
      this.move();
    });
    const end = (event) => {
      pointers.delete(event.pointerId);
      setTimeout(() => (this.moved = false)); // after the click of a drag's end; a click without a pointer may follow
    };
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) this.svg.addEventListener(name, end);
    this.svg.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey && !this.place.classList.contains("wide")) return; // the page scrolls
        event.preventDefault();
        this.scale(Math.exp(-event.deltaY / 300), local(event));
      },
      { passive: false },
    );
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.bar.addEventListener("submit", (event) => {
      event.preventDefault();
      this.next(1);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.place.classList.contains("wide")) this.toggleWide();
    });
  }

  key(event) {
    const item = this.byKey.get(this.chosen?.key) ?? [...this.elements.values()][0]?.box.item;
    if (!item || event.ctrlKey || event.metaKey) return;
    const ways = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
    if (event.key === "Enter" || event.key === " ") this.act(item);
    else if (event.key === "+") this.scale(1.4);
    else if (event.key === "-") this.scale(1 / 1.4);
    else if (ways[event.key]) this.step(item, ways[event.key]);
    else return;
    event.preventDefault();
  }

  // The nearest box in a direction; what is aside counts double.
  step(item, [dx, dy]) {
    const middle = ({ x, y, w, h, open }) => [x + w / 2, open ? y + ROOM.head / 2 : y + h / 2];
    const here = middle(this.elements.get(item.key).box);
    let best = null;
    let least = Infinity;
    for (const { box } of this.elements.values()) {
      const there = middle(box);
      const ahead = (there[0] - here[0]) * dx + (there[1] - here[1]) * dy;
      const aside = Math.abs((there[0] - here[0]) * dy) + Math.abs((there[1] - here[1]) * dx);
      if (ahead > 1 && ahead + 2 * aside < least) [least, best] = [ahead + 2 * aside, box];
    }
    if (!best) return;
    this.choose(best.item, true);
    this.reveal(best);
  }

  // Moves the picture just as far as a box needs to be seen.
  reveal(box) {
    const { width, height } = this.svg.getBoundingClientRect();
    const { k } = this.zoom;
    const into = (at, size, room) => (at < 10 ? 10 - at : at + size > room - 10 ? room - 10 - at - size : 0);
    this.zoom.x += into(this.zoom.x + box.x * k, Math.min(box.w * k, width - 20), width);
    this.zoom.y += into(this.zoom.y + box.y * k, Math.min(box.h * k, height - 20), height);
    this.kept = true;
    this.move();
  }
}

function kindOf(item) {
  if (!item.items) return item.kind === "node" ? "" : item.kind;
  return item.kind === "call" ? "" : item.path === null ? "" : "module";
}

function countsOf(group) {
  const counts = new Map();
  const walk = (items) => {
    for (const item of items) {
      if (item.items) walk(item.items);
      else if (item.kind === "node") counts.set(item.label, (counts.get(item.label) ?? 0) + 1);
    }
  };
  walk(group.items);
  const all = [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} ${name}`);
  return all.slice(0, 8).join(", ") + (all.length > 8 ? ` and ${all.length - 8} other kinds` : "");
}

const wholeGraph = document.getElementById("whole");
if (wholeGraph) {
  unpack(document.getElementById("whole-data").textContent)
    .then((data) => new View(wholeGraph, data))
    .catch((error) => wholeGraph.append(element("p", {}, `This browser does not draw the graph: ${error.message}`)));
}
