// Tables: a click on a column sorts, a field filters, long ones are cut, rows of grouped ones open.

/** A table whose items are its rows, or its bodies if each of them is a row and what it opens to. */
class Sortable {
  constructor(table) {
    this.table = table;
    this.grouped = table.classList.contains("grouped");
    this.items = this.grouped ? [...table.tBodies] : [...table.tBodies[0].rows];
    this.limit = Number(table.dataset.limit) || Infinity;
    this.needle = "";
    this.everything = false;
    this.headers = [...table.tHead.rows[0].cells];
    this.headers.forEach((header, column) => header.classList.contains("picture") || this.addSorting(header, column));
    this.addTools();
    this.show();
  }

  row(item) {
    return this.grouped ? item.rows[0] : item;
  }

  key(item, column) {
    const cell = this.row(item).cells[column];
    if (!cell) return "";
    return cell.dataset.sort === undefined ? cell.textContent : cell.dataset.sort;
  }

  addSorting(header, column) {
    const button = element("button", { type: "button" }, ...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => this.sort(header, column));
  }

  sort(header, column) {
    const keys = new Map(this.items.map((item) => [item, this.key(item, column)]));
    const numeric = [...keys.values()].every((key) => key !== "" && Number.isFinite(Number(key)));
    // Numbers begin with the largest one, words with the first.
    const before = header.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : numeric;
    for (const other of this.headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    const compare = numeric ? (a, b) => Number(a) - Number(b) : (a, b) => a.localeCompare(b, "en", { numeric: true });
    this.items.sort((a, b) => sign * compare(keys.get(a), keys.get(b)));
    (this.grouped ? this.table : this.table.tBodies[0]).append(...this.items);
    this.show();
  }

  addTools() {
    this.count = element("span", { class: "soft", "aria-live": "polite" });
    this.button = element("button", { type: "button" });
    this.button.addEventListener("click", () => {
      this.everything = !this.everything;
      this.show();
    });
    const tools = element("div", { class: "tools" });
    if (this.items.length > 8) {
      const field = element("input", { type: "search", placeholder: "filter" });
      field.addEventListener("input", () => {
        this.needle = field.value.trim().toLowerCase();
        this.show();
      });
      tools.append(element("label", {}, "Rows with ", field));
    }
    tools.append(this.count, this.button);
    (this.table.closest(".scroll") || this.table).before(tools);
  }

  matches(item) {
    if (item.text === undefined) {
      item.text = [...this.row(item).cells].map((cell) => (cell.querySelector("svg") ? "" : cell.textContent)).join(" ").toLowerCase();
    }
    return item.text.includes(this.needle);
  }

  show() {
    const limit = this.everything ? Infinity : this.limit;
    let matching = 0;
    for (const item of this.items) {
      const match = !this.needle || this.matches(item);
      matching += match;
      item.hidden = !match || matching > limit;
    }
    const shown = Math.min(matching, limit);
    const isCut = shown < matching;
    this.count.textContent = isCut || this.needle ? `${shown} of ${isCut ? matching : this.items.length}` : "";
    this.button.hidden = matching <= this.limit;
    this.button.textContent = this.everything ? `Show the first ${this.limit}` : `Show all ${matching}`;
  }
}

/** A button before the row's name, and the row itself, open what belongs to it. */
function addOpener(body) {
  const [row, more] = body.rows;
  if (!more) return;
  more.querySelector("details").open = true;
  const button = element("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-label": "call sites, outcomes" });
  row.cells[0].prepend(button);
  row.addEventListener("click", (event) => {
    if (event.target.closest("a, input") || String(getSelection())) return;
    const isOpen = more.classList.toggle("open");
    button.setAttribute("aria-expanded", String(isOpen));
  });
}

ready.push(() => {
  for (const table of document.querySelectorAll("table.grouped")) [...table.tBodies].forEach(addOpener);
  for (const table of document.querySelectorAll("table.sortable")) table.sortable = new Sortable(table);
});
