// @ts-check
/** Into the drawer and out of it: links, Escape, the question about what is not saved, and where the focus goes. */


import { failed } from "./drawer_send.js";
import { counted } from "./drawer_totals.js";

/** @typedef {import("./drawer_plan.js").Plan} Plan */

const SIGNED_OUT = "You are not signed in any more: do that in another tab.";
const FAILURES = {
  "htmx:sendError": "The server cannot be reached.",
  "htmx:responseError": "The server did not accept this.",
  "htmx:timeout": "The server took too long.",
};
/** There is room for the tools or for what is offered at all; as in drawer.css. */
const NARROW = window.matchMedia("(width < 44rem)");
const OPENS = "a[data-drawer]";
/** Where one was before. */
let cameFrom = "";
/** @type {HTMLElement | null} */
let opener = null;

/** @param {HTMLDialogElement} drawer */
export function openDrawer(drawer) {
  if (drawer.open) return;
  cameFrom ||= drawer.dataset.page ?? "/";
  const fold = drawer.querySelector("[data-fold]");
  if (fold instanceof HTMLDetailsElement) fold.open = !NARROW.matches;
  drawer.showModal();
  drawer.querySelector("[data-server][open]")?.scrollIntoView({ block: "start" });
}

/** @param {HTMLDialogElement} drawer */
function close(drawer) {
  drawer.close();
  drawer.remove();
  window.history.replaceState(null, "", cameFrom);
  cameFrom = "";
  const back = opener?.isConnected ? opener : document.querySelector(OPENS);
  if (back instanceof HTMLElement) back.focus();
}

/** @param {HTMLDialogElement} drawer @param {Plan} plan */
function leave(drawer, plan) {
  const question = drawer.querySelector("[data-leave]");
  if (!plan.size || !(question instanceof HTMLDialogElement)) return close(drawer);
  const text = question.querySelector("[data-leave-text]");
  if (text) text.textContent = `${counted(plan.size, "change")} would be lost. Nothing of it was applied.`;
  return question.open ? undefined : question.showModal();
}

/** @param {MouseEvent} event @param {HTMLAnchorElement} link */
function follow(event, link) {
  const place = document.querySelector("#drawer-place");
  if (!place || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  opener = link;
  cameFrom = window.location.pathname + window.location.search;
  // @ts-ignore - htmx is a global of its own script
  void window.htmx.ajax("GET", link.href, { target: place, swap: "innerHTML" });
}

/** Escape closes what is innermost. @param {KeyboardEvent} event @param {HTMLDialogElement} drawer @param {Plan} plan */
function escape(event, drawer, plan) {
  const target = event.target instanceof Element ? event.target : null;
  if (event.key !== "Escape" || target?.closest("[data-leave]")) return;
  event.preventDefault();
  const fold = target?.closest("details.why[open]");
  if (fold instanceof HTMLDetailsElement) fold.open = false;
  else if (target instanceof HTMLInputElement && target.type === "search" && target.value) {
    target.value = "";
    target.dispatchEvent(new Event("search", { bubbles: true }));
  } else leave(drawer, plan);
}

/** @param {HTMLElement} drawer @param {Element} button */
function showLine(drawer, button) {
  const there = drawer.querySelector(`#x-${CSS.escape(button.getAttribute("data-show-line") ?? "")}`);
  const form = drawer.querySelector("[data-find]");
  if (there instanceof HTMLElement) {
    there.scrollIntoView({ block: "center" });
    there.focus();
  } else if (form instanceof HTMLFormElement) {
    const { find, show } = /** @type {any} */ (form.elements);
    [find.value, show.value] = [button.getAttribute("data-show-name"), ""];
    find.focus();
    form.requestSubmit();
  }
}

/** @param {Plan} plan @param {(drawer: HTMLDialogElement) => void} discard */
export function connectWays(plan, discard) {
  /** @returns {HTMLDialogElement | null} */
  const current = () => document.querySelector("dialog[data-composed]");
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const link = target?.closest(OPENS);
    const drawer = current();
    if (link instanceof HTMLAnchorElement) follow(event, link);
    else if (drawer && target?.closest("[data-close]")) leave(drawer, plan);
    else if (target?.closest("[data-stay]")) target.closest("dialog")?.close();
    else if (drawer && target?.closest("[data-leave-anyway]")) {
      discard(drawer);
      close(drawer);
    } else if (drawer && target?.closest("[data-show-line]")) {
      showLine(drawer, /** @type {Element} */ (target.closest("[data-show-line]")));
    }
  });
  document.addEventListener("keydown", (event) => {
    const drawer = current();
    if (drawer?.open) escape(event, drawer, plan);
  });
  // The system's own way back, such as a swipe.
  document.addEventListener(
    "cancel",
    (event) => {
      const drawer = current();
      if (event.target !== drawer || !drawer) return;
      event.preventDefault();
      leave(drawer, plan);
    },
    true,
  );
  window.addEventListener("beforeunload", (event) => plan.size && event.preventDefault());
  NARROW.addEventListener("change", () => current()?.querySelector("[data-fold]")?.toggleAttribute("open", !NARROW.matches));
  connectFailures(current);
}

/** @param {() => HTMLElement | null} current */
function connectFailures(current) {
  for (const [name, why] of Object.entries(FAILURES)) {
    document.addEventListener(name, (event) => {
      const drawer = current();
      const status = /** @type {CustomEvent} */ (event).detail?.xhr?.status;
      if (drawer) failed(drawer, status === 403 ? SIGNED_OUT : why);
    });
  }
  document.addEventListener("htmx:beforeSwap", (event) => {
    const drawer = current();
    const { xhr, pathInfo } = /** @type {CustomEvent} */ (event).detail;
    const asked = new URL(pathInfo.requestPath, window.location.href).pathname;
    if (!drawer || new URL(xhr.responseURL).pathname === asked) return;
    event.preventDefault();
    failed(drawer, SIGNED_OUT);
  });
}


