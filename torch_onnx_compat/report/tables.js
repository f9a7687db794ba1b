"use strict";
// Sorts tables by a click on a heading, and shows of the models those that a text, a choice or a link asks for.

const collator = new Intl.Collator();

function keyOf(row, column) {
  const text = row.cells[column].textContent.trim();
  return { row, text, number: parseFloat(text) };
}

// Numbers before texts, what is empty last in either direction.
function compare(a, b, sign) {
  if (!a.text || !b.text) return !a.text - !b.text;
  const [isText, otherIsText] = [Number.isNaN(a.number), Number.isNaN(b.number)];
  if (isText !== otherIsText) return sign * (isText - otherIsText);
  return sign * (isText ? collator.compare(a.text, b.text) : a.number - b.number);
}

function sort(table, column, heading) {
  const falling = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const keys = [...table.tBodies[0].rows].map((row) => keyOf(row, column));
  keys.sort((a, b) => compare(a, b, falling ? -1 : 1));
  table.tBodies[0].append(...keys.map((key) => key.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, column, heading));
    heading.append(button);
  });
}

const section = document.getElementById("models");
const models = section.querySelector("table");
const rows = models ? [...models.tBodies[0].rows] : [];
const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
const FILTERS = ["zoo", "family", "target", "by", "verdict"].filter((name) => rows[0]?.dataset[name] !== undefined);
const bar = document.createElement("form");
const count = document.createElement("output");
const controls = {};

function add(name, control) {
  const label = document.createElement("label");
  label.append(`${name} `, control);
  bar.append(label);
  controls[name] = control;
  control.addEventListener("input", show);
}

function show() {
  const wanted = controls.model.value.toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits = FILTERS.every((name) => {
      const value = controls[name].value;
      return value === "" || row.dataset[name] === value;
    });
    row.hidden = !fits || !texts.get(row).includes(wanted);
    shown += !row.hidden;
  }
  count.textContent = `${shown} of ${rows.length} rows`;
}

function choose(chosen) {
  for (const [name, control] of Object.entries(controls)) control.value = chosen[name] ?? "";
  show();
}

if (rows.length > 0) {
  const search = document.createElement("input");
  search.type = "search";
  add("model", search);
  for (const name of FILTERS) {
    const select = document.createElement("select");
    for (const value of ["", ...new Set(rows.map((row) => row.dataset[name]).sort())]) {
      select.add(new Option(value || "all", value));
    }
    add(name, select);
  }
  bar.append(count);
  bar.addEventListener("submit", (event) => event.preventDefault());
  section.querySelector("h2").after(bar);
  for (const link of document.querySelectorAll('a[href="#models"]')) {
    link.addEventListener("click", () => choose(link.dataset));
  }
  show();
}
