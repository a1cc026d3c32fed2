// Flame graphs. A tree comes as four numbers for a node, in walking order: depth, name, ns, waits.

const ROW = 18;
const LETTER = 6.7;
const SVG = "http://www.w3.org/2000/svg";

/** A time with its unit. */
function span(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  const [size, unit] = units.find(([size]) => ns >= size) || [1, "ns"];
  const value = ns / size;
  return `${value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
}

/** The root of a tree, which has no name of its own. */
function plant(tree, names) {
  const root = { name: "all", kind: 3, total: 0, count: 0, depth: 0, start: 0, parent: null, children: [] };
  const path = [root];
  for (let place = 0; place < tree.nodes.length; place += 4) {
    const [depth, number, total, count] = tree.nodes.slice(place, place + 4);
    const parent = path[depth];
    const start = parent.children.reduce((sum, child) => sum + child.total, parent.start);
    const [name, kind] = names[number];
    const node = { name, kind, total, count, depth: depth + 1, start, parent, children: [] };
    parent.children.push(node);
    path[depth + 1] = node;
    path.length = depth + 2;
  }
  root.total = root.children.reduce((sum, child) => sum + child.total, 0);
  root.count = root.children.reduce((sum, child) => sum + child.count, 0);
  return root;
}

class Flame {
  constructor(box) {
    this.box = box;
    const data = JSON.parse(box.querySelector("script").textContent);
    this.trees = data.trees.map((tree) => ({ title: tree.title, of: tree.of, root: plant(tree, data.names) }));
    this.needle = "";
    this.addTools();
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("tabindex", "0");
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "flame graph; arrow keys move, Enter zooms in, Escape zooms out");
    this.svg.addEventListener("keydown", (event) => this.walk(event));
    this.status = element("p", { class: "status", "aria-live": "polite" });
    box.append(this.status, this.svg);
    this.choose(this.trees[0]);
    // In the next frame: drawing changes the height, which would be another thing to observe.
    new ResizeObserver(() => requestAnimationFrame(() => this.width !== box.clientWidth && this.draw())).observe(box);
  }

  addTools() {
    const tools = element("div", { class: "tools" });
    for (const tree of this.trees) {
      tree.button = element("button", { type: "button", "aria-pressed": "false" }, tree.title);
      tree.button.addEventListener("click", () => this.choose(tree));
      tools.append(tree.button);
    }
    const field = element("input", { type: "search", placeholder: "search" });
    field.addEventListener("input", () => {
      this.needle = field.value.trim().toLowerCase();
      this.draw();
    });
    this.found = element("span", { class: "soft", "aria-live": "polite" });
    this.out = element("button", { type: "button" }, "Zoom out");
    this.out.addEventListener("click", () => this.zoom(this.tree.root));
    tools.append(element("label", {}, "Functions with ", field), this.found, this.out);
    this.box.append(tools);
  }

  choose(tree) {
    for (const other of this.trees) other.button.setAttribute("aria-pressed", String(other === tree));
    this.tree = tree;
    this.zoom(tree.root);
  }

  zoom(node) {
    this.focus = node;
    this.current = node;
    this.out.hidden = node === this.tree.root;
    this.draw();
    this.say(node);
  }

  isMatch(node) {
    return this.needle !== "" && node.parent !== null && node.name.toLowerCase().includes(this.needle);
  }

  words(node) {
    const share = (100 * node.total) / this.tree.root.total;
    const inlined = node.kind === 1 ? " (inlined)" : "";
    return `${node.name}${inlined}: ${span(node.total)} ${this.tree.of}, ${share.toFixed(1)} % of all, ${node.count.toLocaleString("en")} waits`;
  }

  say(node) {
    this.status.textContent = this.words(node);
  }

  draw() {
    this.width = this.box.clientWidth;
    if (!this.width) return;
    this.groups = new Map();
    this.svg.replaceChildren();
    this.deepest = 0;
    for (let above = this.focus.parent; above; above = above.parent) this.frame(above, 0, this.width, true);
    this.subtree(this.focus);
    const height = (this.deepest + 1) * ROW;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", String(height));
    this.mark();
    const matching = this.matching(this.tree.root);
    const share = (100 * matching) / this.tree.root.total;
    this.found.textContent = this.needle ? `${span(matching)}, ${share.toFixed(1)} % of all` : "";
  }

  /** Draws a node and what is below it, as far as it can be seen. */
  subtree(node) {
    const scale = this.width / this.focus.total;
    const width = node.total * scale;
    if (width < 0.4) return;
    this.frame(node, (node.start - this.focus.start) * scale, width, false);
    for (const child of node.children) this.subtree(child);
  }

  frame(node, x, width, isAbove) {
    const make = (name, attributes) => {
      const made = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      return made;
    };
    // A name has the same tint everywhere.
    let tint = 0;
    for (const letter of node.name) tint = (tint * 31 + letter.codePointAt(0)) % 997;
    const classes = [`kind-${node.kind}`, `tint-${tint % 3}`];
    if (isAbove) classes.push("above");
    if (this.isMatch(node)) classes.push("match");
    const group = make("g", { class: classes.join(" ") });
    const title = make("title", {});
    title.textContent = this.words(node);
    const y = node.depth * ROW;
    group.append(title, make("rect", { x: x.toFixed(2), y, width: width.toFixed(2), height: ROW - 1 }));
    const letters = Math.floor((width - 6) / LETTER);
    if (letters >= 3) {
      const text = make("text", { x: (x + 3).toFixed(2), y: y + 12.5 });
      text.textContent = node.name.length > letters ? node.name.slice(0, letters - 1) + "…" : node.name;
      group.append(text);
    }
    group.addEventListener("click", () => this.zoom(node));
    group.addEventListener("mouseenter", () => this.say(node));
    this.svg.append(group);
    this.groups.set(node, group);
    this.deepest = Math.max(this.deepest, node.depth);
  }

  /** Time in nodes that match; what is below one is in it already. */
  matching(node) {
    if (this.isMatch(node)) return node.total;
    return node.children.reduce((sum, child) => sum + this.matching(child), 0);
  }

  mark() {
    for (const [node, group] of this.groups) group.classList.toggle("current", node === this.current);
  }

  walk(event) {
    const siblings = this.current.parent ? this.current.parent.children : [this.current];
    const place = siblings.indexOf(this.current);
    const next = {
      ArrowUp: this.current.parent,
      ArrowDown: this.current.children[0],
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
    };
    if (event.key === "Enter") this.zoom(this.current);
    else if (event.key === "Escape") this.zoom(this.tree.root);
    else if (event.key in next) {
      const node = next[event.key];
      if (node && this.groups.has(node)) {
        this.current = node;
        this.mark();
        this.say(node);
      }
    } else return;
    event.preventDefault();
  }
}

ready.push(() => {
  for (const box of document.querySelectorAll(".flame")) box.flame = new Flame(box);
});
