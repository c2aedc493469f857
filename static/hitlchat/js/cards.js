// @ts-check
/** Behaviour of approval cards wherever they stand: countdown, grace period, what must be looked at before approving. */

import "./attention.js";
import "./times.js";

const GRACE_MS = 500;
const LOOK_MS = 3000;
/** What is answered: a card, or several calls together. */
const ASKS = "[data-ask], [data-batch]";

/** When each card was first in sight, or the person last typed elsewhere. @type {WeakMap<Element, number>} */
const settledSince = new WeakMap();

/** @param {Element} card */
function isFresh(card) {
  return performance.now() - (settledSince.get(card) ?? performance.now()) < GRACE_MS;
}

/** What does not count yet looks and reads like it. @param {Element} card */
function showFresh(card) {
  const fresh = isFresh(card);
  card.toggleAttribute("data-fresh", fresh);
  for (const button of card.querySelectorAll(".ask-foot .btn")) {
    if (fresh) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
}

/** @param {Element} card */
function beginGrace(card) {
  settledSince.set(card, performance.now());
  showFresh(card);
  setTimeout(() => showFresh(card), GRACE_MS + 1);
}

/** Start, or start again, the pause in which neither keys nor clicks count (SR-39). */
export function restartGrace(root = document) {
  root.querySelectorAll(ASKS).forEach(beginGrace);
}

/** @param {EventTarget | null} target */
function isTick(target) {
  if (!(target instanceof Element)) return false;
  return Boolean(target.closest("label")?.querySelector("[data-reviewed]") || target.closest("[data-grant-form]"));
}

/** Writing answers nothing, nor does going on with Tab: whoever writes while another card comes or goes must not lose a letter. @param {Event} event */
function isWriting(event) {
  if (event instanceof KeyboardEvent && event.key === "Tab") return true;
  return event.type !== "submit" && (event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement);
}

/** @param {Event} event */
function ignoreWhileFresh(event) {
  const card = event.target instanceof Element ? event.target.closest(ASKS) : null;
  // The tick lets nothing run by itself, nor does the scope of a grant: an early one stays, and Approve has its own pause.
  if (!card || !isFresh(card) || isTick(event.target) || isWriting(event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Approve is possible once everything folded was opened and, at L5, the review was confirmed. @param {Element} card */
function updateApprove(card) {
  if (Number(card.getAttribute("data-level")) < 4 || card.hasAttribute("data-over")) return;
  card.querySelectorAll("[data-approve]").forEach((button) => button instanceof HTMLButtonElement && updateButton(card, button));
}

/** With the arguments changed there is a second one, with a tick of its own. @param {Element} card @param {HTMLButtonElement} button */
function updateButton(card, button) {
  const why = button.closest(".ask-foot")?.querySelector(".why-not");
  if (!why) return;
  const closed = card.querySelectorAll("details[data-fold]:not([data-opened])").length;
  const box = (button.closest("[data-edit]") ?? card).querySelector("[data-reviewed]");
  const reviewed = !(box instanceof HTMLInputElement) || box.checked;
  button.disabled = closed > 0 || !reviewed;
  const said = why.textContent || "Unfold everything first.";
  const words = closed ? said : reviewed ? "" : "Confirm first that you reviewed it.";
  // Written only when it differs, since the observer below looks again after each change.
  if (why.textContent !== words) why.textContent = words;
}

/** Steps of changing the arguments that were there at the last look. @type {WeakSet<Element>} */
const steps = new WeakSet();

/** A step that came just now has its own pause: its buttons stand where others stood. @param {Element} step */
function meetStep(step) {
  const card = step.closest("[data-ask]");
  if (!card || steps.has(step)) return;
  steps.add(step);
  step.querySelector("h4[autofocus]")?.scrollIntoView({ block: "start" });
  beginGrace(card);
  updateApprove(card);
}

/** @param {Event} event */
function endEdit(event) {
  const button = event.target instanceof Element ? event.target.closest("[data-end-edit]") : null;
  const card = button?.closest("[data-ask]");
  if (!card) return;
  card.querySelector("[data-edit]")?.replaceChildren();
  beginGrace(card);
  const more = card.querySelector("details.menu.end > summary");
  if (more instanceof HTMLElement) more.focus();
}

/** How far this browser's clock is behind the server's, in ms: deadlines are the server's. */
const skew = Date.parse(document.documentElement.dataset.now ?? "") - Date.now() || 0;

/** At 0:00 nothing can be answered any more. @param {Element} card @param {boolean} isOver */
function setOver(card, isOver) {
  if (card.hasAttribute("data-over") === isOver) return;
  card.toggleAttribute("data-over", isOver);
  for (const button of card.querySelectorAll("button[type=submit]")) {
    if (button instanceof HTMLButtonElement) button.disabled = isOver;
  }
  updateApprove(card);
}

/** Where no connection brings it, ask what became of a call a second after its deadline, then now and then. @param {Element} card @param {number} ago */
function askWhatBecame(card, ago) {
  if (ago > 0 && ago % 2 === 1) card.closest("[data-card-slot]")?.querySelector("[data-what-became]")?.dispatchEvent(new Event("expired"));
}

function tick() {
  for (const element of document.querySelectorAll("[data-deadline]")) {
    const seconds = Math.round((Date.parse(element.getAttribute("data-deadline") ?? "") - Date.now() - skew) / 1000);
    const left = Math.max(0, seconds);
    const card = element.closest("[data-ask]");
    if (card) setOver(card, seconds <= 0);
    if (card) askWhatBecame(card, -seconds);
    const hours = Math.floor(left / 3600);
    const rest = `${Math.floor((left % 3600) / 60).toString().padStart(hours ? 2 : 1, "0")}:${(left % 60).toString().padStart(2, "0")}`;
    const text = hours ? `${hours}:${rest}` : rest;
    if (element.textContent !== text) element.textContent = text;
    const place = element.closest("[data-left]") ?? element.parentElement;
    place?.classList.toggle("soon", left < 60);
    place?.querySelector("[data-more-time]")?.toggleAttribute("hidden", left === 0 || left >= 60);
  }
}

/** In its last minute a deadline may be put off, by someone else too: each piece that shows one looks for itself. */
function look() {
  for (const place of document.querySelectorAll("[data-left].soon")) place.dispatchEvent(new Event("look"));
}

/** The button for more time has gone with the press of it: whoever pressed it goes on at what it was about. @param {Event} event */
function goOn(event) {
  const place = event.target instanceof Element && event.target.matches("[data-left]") ? event.target : null;
  const verb = /** @type {CustomEvent} */ (event).detail?.requestConfig?.verb;
  if (!place || verb !== "post" || (document.activeElement && document.activeElement !== document.body)) return;
  const title = place.closest("[data-ask]")?.querySelector("h3");
  title?.setAttribute("tabindex", "-1");
  const next = title ?? place.closest("li, .call")?.querySelector("[data-answer], :scope > div > a");
  if (next instanceof HTMLElement) next.focus();
}

/** @param {Element} card */
function meet(card) {
  if (!settledSince.has(card)) beginGrace(card);
  updateApprove(card);
}

for (const kind of ["click", "keydown", "submit"]) document.addEventListener(kind, ignoreWhileFresh, true);
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (target instanceof HTMLTextAreaElement && !target.closest("[data-ask]")) restartGrace();
});
document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement)) return;
    if (details.matches("[data-fold]") && details.open) details.setAttribute("data-opened", "");
    const card = details.closest("[data-ask]");
    if (card) updateApprove(card);
  },
  true,
);
document.addEventListener("change", (event) => {
  const card = event.target instanceof Element ? event.target.closest("[data-ask]") : null;
  if (card) updateApprove(card);
});
document.addEventListener("input", (event) => {
  const text = event.target;
  if (!(text instanceof HTMLTextAreaElement) || !text.matches("[data-counted]")) return;
  const count = text.parentElement?.querySelector("[data-count]");
  if (count) count.textContent = String(text.value.length);
});
document.addEventListener("click", endEdit);
document.addEventListener("click", (event) => {
  const began = event.target instanceof Element ? event.target.closest("[data-begin-edit]") : null;
  began?.closest("details.menu")?.removeAttribute("open");
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute("open");
  }
});

new MutationObserver(() => {
  document.querySelectorAll(ASKS).forEach(meet);
  document.querySelectorAll("[data-edit-step]").forEach(meetStep);
  tick();
}).observe(document.body, { childList: true, subtree: true });
document.querySelectorAll(ASKS).forEach(meet);
tick();
setInterval(tick, 1000);
setInterval(look, LOOK_MS);
document.addEventListener("htmx:afterSettle", goOn);
