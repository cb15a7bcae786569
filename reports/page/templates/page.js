"use strict";
(() => {
  document.documentElement.classList.add("scripted");

  // Tables: a head is a button; one press ascends, the next descends, the third restores the order of the plan.
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const valueOf = (row, column, isNumber) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    if (text === "") return null;
    return isNumber ? Number(text) : text;
  };
  const compare = (left, right, isNumber) => (isNumber ? left - right : collator.compare(left, right));

  const sorted = (rows, column, isNumber, direction) => {
    const sign = direction === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => [valueOf(row, column, isNumber), row]);
    const known = keyed.filter(([value]) => value !== null);
    known.sort(([left], [right]) => sign * compare(left, right, isNumber));
    const missing = keyed.filter(([value]) => value === null);
    return [...known, ...missing].map(([, row]) => row);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const groups = [...table.tBodies].map((body) => ({
      body,
      original: [...body.rows].filter((row) => row.cells[0].localName === "td"),
    }));
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const isNumber = head.dataset.sort === "number";
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        const direction = next === undefined ? "ascending" : next;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (direction !== null) head.setAttribute("aria-sort", direction);
        for (const { body, original } of groups) {
          body.append(...(direction === null ? original : sorted(original, column, isNumber, direction)));
        }
      });
    });
  }

  // Evidence: its words lie in the appendix; the dialog borrows them while it is open.
  const dialog = document.getElementById("evidence-dialog");
  const place = dialog.querySelector(".borrowed");
  let lender = null;
  const evidenceAt = (hash) => {
    const id = hash.slice(1);
    const found = id === "" ? null : document.getElementById(id);
    return found !== null && found.matches("details.evidence") ? found : null;
  };
  // Within a frame that another page shows, the address may be out of reach; the dialog works all the same.
  const setAddress = (hash) => {
    try {
      history.replaceState(null, "", hash === "" ? location.href.split("#")[0] : hash);
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
  };
  const giveBack = () => {
    if (lender !== null) lender.append(...place.childNodes);
    lender = null;
  };
  const open = (evidence) => {
    giveBack();
    lender = evidence;
    dialog.querySelector("h2").textContent = evidence.querySelector("summary").textContent;
    place.append(...[...evidence.children].filter((child) => child.localName !== "summary"));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    setAddress(`#${evidence.id}`);
  };
  dialog.addEventListener("close", () => {
    giveBack();
    setAddress("");
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest(".close") !== null) dialog.close();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const evidence = link === null ? null : evidenceAt(link.hash);
    if (evidence === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(evidence);
  });
  const follow = () => {
    const evidence = evidenceAt(location.hash);
    if (evidence !== null) open(evidence);
    else if (dialog.open) dialog.close();
  };
  window.addEventListener("hashchange", follow);
  follow();

  // On paper nothing can be opened, so the evidence is.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    if (dialog.open) dialog.close();
    closed = [...document.querySelectorAll("details.evidence:not([open])")];
    closed.forEach((details) => details.setAttribute("open", ""));
  });
  window.addEventListener("afterprint", () => closed.forEach((details) => details.removeAttribute("open")));
})();
