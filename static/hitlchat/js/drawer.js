// @ts-check
/** The Composed Tools drawer: into it and out of it, the question about what is not applied, and where the focus goes. */

import { changes, fill, keep, narrow, restore, say, show } from "./drawer_forms.js";
import { _, _n } from "./texts.js";

const SIGNED_OUT = _("You are signed out. Sign in again in another tab.");
const KEPT = _("Nothing was applied, and your changes are kept here.");
const FAILURES = {
  "htmx:sendError": _("The server cannot be reached."),
  "htmx:responseError": _("The server rejected the changes."),
  "htmx:timeout": _("The server took too long."),
};
/** There is room for the tools or for what is offered at all; as in drawer.css. */
const NARROW = window.matchMedia("(width < 44rem)");
const OPENS = "a[data-drawer]";
/** Where one was before. */
let cameFrom = "";
/** @type {HTMLElement | null} */
let opener = null;

/** @returns {HTMLDialogElement | null} */
const current = () => document.querySelector("dialog[data-composed]");
// @ts-ignore - htmx is a global of its own script
const htmx = () => window.htmx;

/** Early looks at what goes now have nowhere to be told. @param {Element} place */
function hush(place) {
  for (const look of place.querySelectorAll("[data-check]")) htmx().trigger(look, "htmx:abort");
}

/** @param {HTMLDialogElement} drawer */
function open(drawer) {
  if (drawer.matches(":modal")) return;
  cameFrom ||= drawer.dataset.page ?? "/";
  drawer.querySelector("[data-fold]")?.toggleAttribute("open", !NARROW.matches);
  // Without this script it is open from the beginning, and the page behind can be used.
  drawer.removeAttribute("open");
  drawer.showModal();
  drawer.querySelector("[data-server][open]")?.scrollIntoView({ block: "start" });
}

/** @param {HTMLDialogElement} drawer */
function close(drawer) {
  hush(drawer);
  drawer.close();
  drawer.remove();
  window.history.replaceState(null, "", cameFrom);
  cameFrom = "";
  const back = opener?.isConnected ? opener : document.querySelector(OPENS);
  if (back instanceof HTMLElement) back.focus();
}

/** @param {HTMLDialogElement} drawer */
function leave(drawer) {
  const question = drawer.querySelector("[data-leave]");
  const many = changes(drawer);
  if (!many || !(question instanceof HTMLDialogElement)) return close(drawer);
  const text = question.querySelector("[data-leave-text]");
  if (text) text.textContent = _n("{count} change is not applied and would be lost.", "{count} changes are not applied and would be lost.", many);
  return question.open ? undefined : question.showModal();
}

/** @param {MouseEvent} event @param {HTMLAnchorElement} link */
function follow(event, link) {
  const place = document.querySelector("#drawer-place");
  if (!place || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  opener = link;
  cameFrom = window.location.pathname + window.location.search;
  void htmx().ajax("GET", link.href, { target: place, swap: "innerHTML" });
}

/** Escape closes what is innermost. @param {KeyboardEvent} event @param {HTMLDialogElement} drawer */
function escape(event, drawer) {
  const target = event.target instanceof Element ? event.target : null;
  if (event.key !== "Escape" || target?.closest("[data-leave]")) return;
  event.preventDefault();
  const fold = target?.closest("details.why[open]");
  if (fold instanceof HTMLDetailsElement) fold.open = false;
  else if (target instanceof HTMLInputElement && target.type === "search" && target.value) {
    target.value = "";
    target.dispatchEvent(new Event("search", { bubbles: true }));
  } else leave(drawer);
}

/** @param {HTMLElement} drawer @param {HTMLAnchorElement} link */
function showLine(drawer, link) {
  const there = drawer.querySelector(link.hash);
  const form = drawer.querySelector("[data-find]");
  if (there instanceof HTMLElement) {
    there.scrollIntoView({ block: "center" });
    there.focus();
  } else if (form instanceof HTMLFormElement) {
    const { find, show: which } = /** @type {any} */ (form.elements);
    [find.value, which.value] = [link.dataset.show, ""];
    find.focus();
    form.requestSubmit();
  }
}

/** The server did not do what it was asked. @param {Element} asked @param {string} why */
function failed(asked, why) {
  const form = asked.closest("[data-form]");
  if (form) say(form, `${why} ${KEPT}`);
  else document.querySelector("#drawer-required")?.replaceChildren(why);
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const link = target?.closest("a");
  const drawer = current();
  if (link?.matches(OPENS)) return follow(event, link);
  if (!drawer || !target) return undefined;
  if (target.closest("[data-stay]")) return target.closest("dialog")?.close();
  if (target.closest("[data-leave-anyway]")) return close(drawer);
  if (!target.closest("[data-close], [data-show]")) return undefined;
  event.preventDefault();
  return link ? showLine(drawer, link) : leave(drawer);
});
document.addEventListener("keydown", (event) => {
  const drawer = current();
  if (drawer?.open) escape(event, drawer);
});
// The system's own way back, such as a swipe.
document.addEventListener(
  "cancel",
  (event) => {
    const drawer = current();
    if (event.target !== drawer || !drawer) return;
    event.preventDefault();
    leave(drawer);
  },
  true,
);
document.addEventListener("input", (event) => {
  const drawer = current();
  if (drawer && event.target instanceof HTMLElement && drawer.contains(event.target)) fill(drawer, event.target);
});
window.addEventListener("beforeunload", (event) => {
  const drawer = current();
  if (drawer && changes(drawer)) event.preventDefault();
});
NARROW.addEventListener("change", () => current()?.querySelector("[data-fold]")?.toggleAttribute("open", !NARROW.matches));

/** @param {string} name @param {(drawer: HTMLDialogElement, detail: any, event: Event) => void} follows */
function on(name, follows) {
  document.addEventListener(name, (event) => {
    const drawer = current();
    if (drawer) follows(drawer, /** @type {CustomEvent} */ (event).detail, event);
  });
}

for (const [name, why] of Object.entries(FAILURES)) {
  on(name, (_drawer, { elt, xhr }) => failed(elt, xhr?.status === 403 ? SIGNED_OUT : why));
}
on("htmx:configRequest", narrow);
on("htmx:beforeRequest", (_drawer, { elt }, event) => {
  const form = elt.closest("[data-form]");
  if (elt === form) hush(form);
  else if (elt.matches("[data-check]") && form?.matches(".htmx-request")) event.preventDefault();
});
on("htmx:beforeSwap", (drawer, { elt, xhr, pathInfo, target, shouldSwap }, event) => {
  const asked = new URL(pathInfo.requestPath, window.location.href).pathname;
  if (new URL(xhr.responseURL).pathname !== asked) {
    event.preventDefault();
    failed(elt, SIGNED_OUT);
  } else if (shouldSwap) {
    hush(target);
    if (target.id === "drawer-servers") keep(drawer);
  }
});
on("htmx:afterSwap", restore);
on("htmx:afterSettle", (drawer, { elt, requestConfig }) => {
  open(drawer);
  const asked = requestConfig?.elt;
  if (asked?.matches("[data-discard]")) {
    asked.closest("[data-form]")?.querySelector("[data-answer]")?.replaceChildren();
    say(asked.closest("[data-form]") ?? elt, _("No changes."));
  }
  show(drawer);
  // What was found is in sight from its beginning.
  const [body, found] = [drawer.querySelector("[data-body]"), drawer.querySelector("#drawer-servers")];
  if (!asked?.matches("[data-find]") || !body || !(found instanceof HTMLElement)) return;
  body.scrollTop = Math.min(body.scrollTop, found.offsetTop - asked.offsetHeight);
});
on("htmx:afterRequest", (drawer, { elt }) => elt.matches("[data-check]") && show(drawer));
const waiting = current();
if (waiting) {
  open(waiting);
  show(waiting);
}
