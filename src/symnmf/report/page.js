"use strict";
// Rows are only ever moved and hidden; no string from the data becomes HTML here.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const first = body.rows[0];
  heads.forEach((head, column) => {
    if (first && first.cells[column].className) head.className = first.cells[column].className;
    head.firstElementChild.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const keyed = [...body.rows].map((row) => {
        const cell = row.cells[column];
        const value = cell.dataset.value;
        return [value === undefined ? NaN : Number(value), cell.textContent, row];
      });
      const text = new Intl.Collator(undefined, { numeric: true });
      keyed.sort(([a, s], [b, t]) => {
        if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
        return sign * (Number.isNaN(a) ? text.compare(s, t) : a - b);
      });
      body.append(...keyed.map(([, , row]) => row));
    });
  });
}
for (const box of document.querySelectorAll("input[data-table]")) {
  const rows = [...document.getElementById(box.dataset.table).tBodies[0].rows];
  const texts = rows.map((row) => [...row.cells].map((c) => c.textContent).join("\n").toLowerCase());
  const count = document.querySelector(`[data-count="${box.dataset.table}"]`);
  const all = count.textContent;
  box.addEventListener("input", () => {
    const wanted = box.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = wanted !== "" && !texts[i].includes(wanted);
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = wanted === "" ? all : `${shown.toLocaleString("en")} of ${all}`;
  });
}
