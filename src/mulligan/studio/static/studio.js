// Keeps a page that follows something up to date. Each page works without this file.
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

  if (!main || !("EventSource" in window)) return;
  follow();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (main.dataset.live) {
      follow();
      refresh();
    }
  });
})();
