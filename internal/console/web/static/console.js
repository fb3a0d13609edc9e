// The script of every page. Nothing depends on it: without it, forms and links do the same by loading
// pages. It keeps ages true while a page stays open, copies, switches the theme in place, stops a form
// from being sent twice, and says when a page is no longer live.
(() => {
  "use strict";
  const live = (text) => { const e = document.getElementById("live"); if (e) e.textContent = text; };

  // ---- ages: the same words as times.go, by the server's clock
  const skew = Date.parse(document.body.dataset.now) - Date.now();
  const length = (s) => s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
  const words = (kind, ms) => {
    if (kind === "span") return length(Math.max(0, Math.floor(ms / 1000)));
    if (ms >= 1000) return length(Math.floor(ms / 1000)) + " ago";
    return ms > -1000 ? "now" : "in " + length(Math.floor(-ms / 1000));
  };
  const tick = () => {
    const now = Date.now() + skew;
    for (const e of document.querySelectorAll("time[data-age]")) {
      const text = words(e.dataset.age, now - Date.parse(e.dateTime));
      if (e.textContent !== text) e.textContent = text;
    }
  };
  setInterval(tick, 1000);

  // ---- the address of an answer to a form, so that a reload asks for the page and not for the form
  if (document.body.dataset.location) history.replaceState(null, "", document.body.dataset.location);

  // ---- a failed form takes the focus to what is wrong
  document.querySelector("[data-focus]")?.focus();

  // ---- copy
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const label = button.querySelector("span"), source = document.getElementById(button.dataset.copy);
    button.dataset.label ??= label.textContent;
    try {
      await navigator.clipboard.writeText(source.textContent);
      label.textContent = "Copied";
    } catch { // no clipboard on this origin: leave it selected
      getSelection().selectAllChildren(source);
      label.textContent = "Selected: copy by hand";
    }
    live(label.textContent);
    setTimeout(() => { label.textContent = button.dataset.label; }, 3000);
  });

  // ---- theme, without loading the page again
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-theme-form]") || !event.submitter) return;
    event.preventDefault();
    const theme = event.submitter.value;
    document.documentElement.dataset.theme = theme;
    live(`${theme === "dark" ? "Dark" : "Light"} theme`);
    form.querySelector(theme === "dark" ? ".to-light" : ".to-dark").focus();
    fetch(form.action, { method: "POST", body: new URLSearchParams({ theme, next: "/theme" }), redirect: "manual" }).catch(() => {});
  });

  // ---- a form is sent once
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-once]")) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-disabled", "true");
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of document.querySelectorAll("[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("[aria-disabled]")) button.removeAttribute("aria-disabled");
    }
  });

  // ---- the environments of the chosen client alone
  for (const select of document.querySelectorAll("[data-narrows]")) {
    const narrowed = document.getElementById(select.dataset.narrows);
    const narrow = () => {
      let first = null, kept = false;
      for (const group of narrowed.querySelectorAll("optgroup")) {
        const mine = group.dataset.client === select.value;
        group.hidden = group.disabled = !mine;
        if (mine) { first = group.querySelector("option"); kept = group.contains(narrowed.selectedOptions[0] ?? null); }
      }
      if (!kept) narrowed.value = first ? first.value : "";
    };
    select.addEventListener("change", narrow);
    narrow();
  }

  // ---- lists that script swaps: busy while they wait, honest when nobody answers
  const busy = (event, is) => {
    const list = document.getElementById("list");
    if (!list || event.detail?.ctx?.target !== list) return;
    list.classList.toggle("loading", is);
    if (is) list.setAttribute("aria-busy", "true"); else list.removeAttribute("aria-busy");
  };
  document.addEventListener("htmx:before:request", (e) => busy(e, true));
  document.addEventListener("htmx:finally:request", (e) => busy(e, false));
  document.addEventListener("htmx:response:error", (e) => {
    const ctx = e.detail?.ctx;
    if (ctx?.request?.method === "GET" && ctx.target?.id === "list") location.assign(ctx.request.action); // the page of the error
  });
  document.addEventListener("htmx:error", (e) => {
    if (e.detail?.ctx?.target?.id === "list" && !e.detail.ctx.response) document.getElementById("offline")?.removeAttribute("hidden");
  });
  document.addEventListener("htmx:after:swap", tick);

  // ---- the live dot of a status page
  const dot = (on) => {
    const e = document.getElementById("live-dot");
    if (!e) return;
    e.classList.toggle("live-dot--off", !on);
    e.textContent = on ? "Live: updates as gates change" : "Not live: reload for the newest";
  };
  // The extension opens a stream again that broke, but not one that could not be opened at first.
  let connected = false, retry = 0, pause = 500;
  const reopen = (stream) => {
    dot(false);
    if (connected || retry) return;
    retry = setTimeout(() => {
      retry = 0;
      if (stream.isConnected && !connected) htmx.ajax("GET", stream.getAttribute("hx-sse:connect"), { source: stream });
    }, pause);
    pause = Math.min(2 * pause, 15_000);
  };
  document.addEventListener("htmx:error", (e) => {
    const ctx = e.detail?.ctx;
    if (ctx?.sourceElement?.id === "stream" && !ctx.response) reopen(ctx.sourceElement);
  });
  document.addEventListener("htmx:sse:after:connection", () => { connected = true; pause = 500; dot(true); });
  document.addEventListener("htmx:sse:before:connection", (e) => { if (e.detail?.connection?.attempt > 1) dot(false); });
  document.addEventListener("htmx:sse:close", () => { connected = false; dot(false); });
  document.addEventListener("htmx:sse:error", (e) => {
    dot(false);
    if ([401, 403, 404].includes(e.detail?.status)) location.reload();
  });
})();
