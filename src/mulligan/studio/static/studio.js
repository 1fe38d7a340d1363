// Keeps a page that follows something up to date, applies filters at once, copies texts, and takes keys. Each page
// works without this file.
(() => {
  "use strict";
  const main = document.querySelector("main");
  let events = null;
  let fetching = false;
  let again = false;

  // Makes `old` like `fresh` and keeps the nodes that stay, so that focus and what was folded out stay, too.
  const morph = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || (old.id || "") !== (fresh.id || "")) {
      old.replaceWith(document.importNode(fresh, true));
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      const folded = name === "open" && old.nodeName === "DETAILS";
      if (old.getAttribute(name) !== value && !folded) old.setAttribute(name, value);
    }
    if (["INPUT", "TEXTAREA", "SELECT"].includes(old.nodeName)) return; // what a visitor is writing stays
    children(old, fresh);
  };

  const children = (old, fresh) => {
    const known = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const same = next.id ? known.get(next.id) : null;
      if (same && same !== at) old.insertBefore(same, at);
      else if (!same && (!at || (next.id && at.nodeType === Node.ELEMENT_NODE && at.id))) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      const here = same || at;
      at = here.nextSibling;
      morph(here, next);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };

  const refresh = async () => {
    if (fetching) {
      again = true;
      return;
    }
    fetching = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main");
      if (fresh) morph(main, fresh);
      decorate();
      sortable();
      if (!main.dataset.live) close();
    } catch {
      // the studio was stopped: the page stays as it is
    }
    fetching = false;
    if (again) {
      again = false;
      refresh();
    }
  };

  const close = () => {
    if (events) events.close();
    events = null;
    delete document.documentElement.dataset.following;
  };

  const follow = () => {
    if (events || !main.dataset.live || document.hidden) return;
    events = new EventSource(main.dataset.live);
    events.addEventListener("open", () => (document.documentElement.dataset.following = "yes"));
    events.addEventListener("change", refresh);
    events.addEventListener("error", () => delete document.documentElement.dataset.following);
  };

  // A button in each text that is long enough to be worth copying.
  const decorate = () => {
    if (!navigator.clipboard) return;
    for (const text of main.querySelectorAll("pre")) {
      if (text.querySelector(".copy") || text.textContent.length < 20) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        const copy = text.cloneNode(true);
        for (const one of copy.querySelectorAll(".copy, .hidden")) one.remove();
        const rows = text.classList.contains("diff") ? [...copy.children].map((row) => row.textContent) : null;
        await navigator.clipboard.writeText(rows ? rows.join("\n") : copy.textContent);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
      text.append(button);
    }
  };

  // A click on the heading of a column sorts the rows of the page.
  const value = (row, column) => {
    const cell = row.children[column];
    const time = cell.querySelector("time");
    const text = time ? time.dateTime : cell.textContent.trim();
    const number = Number(text.replace(/[,%+$]/g, ""));
    return text === "" ? null : Number.isNaN(number) ? text : number;
  };
  const sort = (table, column, down) => {
    const rows = [...table.tBodies[0].rows].map((row, n) => [row, value(row, column), n]);
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    rows.sort(([, a, n], [, b, m]) => (a === null ? 1 : b === null ? -1 : (down ? order(b, a) : order(a, b)) || n - m));
    table.tBodies[0].append(...rows.map(([row]) => row));
    [...table.tHead.rows[0].cells].forEach((cell, n) => {
      if (n === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  };
  const sorted = new Map();
  const sortable = () => {
    document.querySelectorAll(".rows table").forEach((table, number) => {
      const cells = table.tHead ? [...table.tHead.rows[0].cells] : [];
      if (!cells.length || table.tBodies[0].rows.length < 2) return;
      cells.forEach((cell, column) => {
        if (cell.querySelector("button")) return;
        const button = document.createElement("button");
        button.type = "button";
        button.append(...cell.childNodes);
        cell.append(button);
        button.addEventListener("click", () => {
          const down = cell.getAttribute("aria-sort") === "ascending";
          sorted.set(number, [column, down]);
          sort(table, column, down);
        });
      });
      if (sorted.has(number)) sort(table, ...sorted.get(number));
    });
  };

  // Filters apply at once.
  for (const form of document.querySelectorAll("form[data-at-once]")) {
    form.addEventListener("change", (event) => {
      if (event.target.type !== "search") form.requestSubmit();
    });
  }

  // A selection of rows is kept while its list is paged, filtered and sorted.
  const selection = (what) => `mulligan ${what}`;
  const select = (form) => {
    const SELECTION = selection(form.dataset.selects);
    const asked = new URLSearchParams(location.search).getAll("id");
    const chosen = new Set([...asked, ...JSON.parse(sessionStorage.getItem(SELECTION) || "[]")]);
    const boxes = [...form.querySelectorAll("input[type=checkbox][name=id]")];
    const count = form.querySelector("[data-count]");
    const clear = document.createElement("button");
    clear.type = "button";
    clear.textContent = "Clear selection";
    const keep = () => {
      sessionStorage.setItem(SELECTION, JSON.stringify([...chosen]));
      const elsewhere = [...chosen].filter((id) => !boxes.some((box) => box.value === id)).length;
      count.textContent = chosen.size ? `${chosen.size} selected${elsewhere ? `, ${elsewhere} not on this page` : ""} ` : "";
      if (chosen.size) count.append(clear);
    };
    clear.addEventListener("click", () => {
      chosen.clear();
      for (const box of boxes) box.checked = false;
      keep();
    });
    for (const box of boxes) {
      box.checked = chosen.has(box.value);
      box.addEventListener("change", () => {
        if (box.checked) chosen.add(box.value);
        else chosen.delete(box.value);
        keep();
      });
    }
    form.addEventListener("submit", () => {
      for (const id of chosen) {
        if (boxes.some((box) => box.value === id)) continue;
        const field = document.createElement("input");
        field.type = "hidden";
        field.name = "id";
        field.value = id;
        form.append(field);
      }
    });
    keep();
  };
  document.querySelectorAll("form[data-selects]").forEach(select);
  if (location.pathname.startsWith("/bank/lessons/")) sessionStorage.removeItem(selection("lessons"));
  if (location.search.startsWith("?queue=")) sessionStorage.removeItem(selection("runs"));

  // "/" goes to the search; k, d and s decide on candidates.
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const search = document.querySelector("input[type=search]");
    const review = document.querySelector("[data-review]"); // anew for each key: a refresh replaces it
    const candidate = document.activeElement.closest("[data-review] > li") || review?.firstElementChild;
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (candidate && ["k", "d", "s"].includes(event.key)) {
      event.preventDefault();
      const button = candidate.querySelector(`button[value=${event.key === "k" ? "keep" : "drop"}]`);
      if (event.key === "s") (candidate.nextElementSibling || review.firstElementChild).focus();
      else if (button) button.click();
    }
  });

  // On paper nothing is folded.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => opened.forEach((one) => (one.open = false)));

  if (!main) return;
  decorate();
  sortable();
  if (!("EventSource" in window)) return;
  follow();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (main.dataset.live) {
      follow();
      refresh();
    }
  });
})();
