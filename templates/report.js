"use strict";

function copyButton(pieces, place) {
  const text = pieces.map((piece) => piece.textContent).join("");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  const say = (words) => {
    button.textContent = words;
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      for (const hidden of document.querySelectorAll(".patch details")) hidden.open = true;
      getSelection().selectAllChildren(place.closest(".patch"));
      say("Selected: press Ctrl+C");
    }
  });
  place.append(button);
}

function numberIn(cell) {
  const value = cell.dataset.v === undefined ? NaN : parseFloat(cell.dataset.v);
  return Number.isNaN(value) ? null : value;
}

function compare(a, b, down) {
  const x = numberIn(a), y = numberIn(b);
  if (x === null && y === null) {
    const order = a.textContent.trim().localeCompare(b.textContent.trim(), undefined, { numeric: true });
    return down ? -order : order;
  }
  // What was not measured stays at the end, whichever way the rest is sorted.
  if (x === null || y === null) return x === null ? 1 : -1;
  return down ? y - x : x - y;
}

function sortable(table) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of head.parentNode.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const last = (row) => row.cells[Math.min(column, row.cells.length - 1)];
      body.append(...[...body.rows].sort((a, b) => compare(last(a), last(b), down)));
    });
  });
}

const pieces = [...document.querySelectorAll("[data-patch]")];
if (pieces.length) copyButton(pieces, document.querySelector(".patch-head"));
document.querySelectorAll("table.sortable").forEach(sortable);
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
