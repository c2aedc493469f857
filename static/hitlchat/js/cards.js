// @ts-check
/** Behaviour of what is answered, wherever it stands: countdown, what must be opened and confirmed before approving. */

import "./attention.js";
import { ASKS, begin, hint, meet, missing, onSeen, show } from "./guard.js";
import { _, _n } from "./texts.js";

export { restartGrace } from "./guard.js";

const LOOK_MS = 3000;

/** What a person types to decline. */
const REASONS = ".because textarea";

/** From this level on everything folded must be opened first. */
const UNFOLDED_FROM = 4;

/** Approve is possible once all that is not folded was in view, at L4 what is folded was opened, at L5 the review was confirmed. @param {Element} card */
function updateApprove(card) {
  if (card.hasAttribute("data-over")) return;
  card.querySelectorAll("[data-approve]").forEach((button) => button instanceof HTMLButtonElement && updateButton(card, button));
  const why = card.querySelector("[data-answers] .why-not");
  if (why) write(why, hint(card));
  show(card);
}

/** @param {Element[]} parts What has not been in view, in words. */
function unseen(parts) {
  if (!parts.length) return "";
  const values = parts.filter((part) => part.matches(".args > dd, .change")).length;
  if (!values) return _("Scroll through the whole card first.");
  return _n("Scroll to see {count} more argument.", "Scroll to see {count} more arguments.", values);
}

/** With the arguments changed there is a second one, with a tick of its own. @param {Element} card @param {HTMLButtonElement} button */
function updateButton(card, button) {
  const why = button.closest(".ask-foot")?.querySelector(".why-not");
  if (!why) return;
  const isHigh = Number(card.getAttribute("data-level")) >= UNFOLDED_FROM;
  const closed = isHigh ? card.querySelectorAll("details[data-fold]:not([data-opened])").length : 0;
  const box = (button.closest("[data-edit]") ?? card).querySelector("[data-reviewed]");
  const reviewed = !(box instanceof HTMLInputElement) || box.checked;
  // Whether it is the right one, the server knows.
  const given = !card.querySelector("[data-typed]:invalid");
  button.disabled = closed > 0 || !reviewed || !given;
  if (!why.hasAttribute("data-folded")) why.setAttribute("data-folded", closed ? why.textContent ?? "" : "");
  const folded = why.getAttribute("data-folded") || _("Unfold everything first.");
  const lacks = reviewed ? _("Fill in the value above first.") : _("Tick the box above first.");
  const words = closed ? folded : reviewed && given ? unseen(missing(button)) || hint(card) : lacks;
  write(why, words);
}

/** Only what differs, since the observer below looks again after each change. @param {Element} why @param {string} words */
function write(why, words) {
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
  begin(card);
  updateApprove(card);
}

/** @param {Event} event */
function endEdit(event) {
  const button = event.target instanceof Element ? event.target.closest("[data-end-edit]") : null;
  const card = button?.closest("[data-ask]");
  if (!card) return;
  card.querySelector("[data-edit]")?.replaceChildren();
  begin(card);
  const more = card.querySelector("details.menu.end > summary");
  if (more instanceof HTMLElement) more.focus();
}

/** How long ago the page came, in ms: it says the server's time of just before that. */
function pageAge() {
  const [came] = performance.getEntriesByType("navigation");
  return came instanceof PerformanceNavigationTiming ? performance.now() - came.responseStart : 0;
}

/** How far this browser's clock is behind the server's, in ms: deadlines are the server's. */
const skew = Date.parse(document.documentElement.dataset.now ?? "") - (Date.now() - pageAge()) || 0;

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
    const exactly = (Date.parse(element.getAttribute("data-deadline") ?? "") - Date.now() - skew) / 1000;
    // Whole seconds that are left: never more than the question was given.
    const left = Math.max(0, Math.floor(exactly));
    const card = element.closest("[data-ask]");
    if (card) setOver(card, exactly <= 0);
    if (card) askWhatBecame(card, Math.floor(-exactly));
    const hours = Math.floor(left / 3600);
    const rest = `${Math.floor((left % 3600) / 60).toString().padStart(hours ? 2 : 1, "0")}:${(left % 60).toString().padStart(2, "0")}`;
    const text = hours ? `${hours}:${rest}` : rest;
    if (element.textContent !== text) element.textContent = text;
    element.parentElement?.querySelector("[data-left-word]")?.removeAttribute("hidden");
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
  const next = title ?? place.closest("li, .call")?.querySelector(":scope > div > a") ?? document.querySelector("[data-answer]");
  if (next instanceof HTMLElement) next.focus();
}

/** An answer takes its buttons away: whoever gave it goes on where what became of the call stands. @param {Event} event */
function goToOutcome(event) {
  const { target, requestConfig } = /** @type {CustomEvent} */ (event).detail;
  const isAnswer = requestConfig?.verb === "post" && target instanceof Element && target.matches("[data-card-slot]");
  if (!isAnswer || document.activeElement !== document.body) return;
  const place = target.closest("#test-result, [data-card-slot][tabindex]");
  if (place instanceof HTMLElement) place.focus({ preventScroll: true });
}

/** Where the focus was, if that goes away as a part of a card is drawn anew, and on the card of which call. */
let left = "";
let onCard = "";
/** With which swap it goes: others may be done before that one. */
let goesWith = "";

/** @param {Event} event */
function noteFocus(event) {
  const { target, requestConfig } = /** @type {CustomEvent} */ (event).detail;
  const focused = document.activeElement;
  if (!(target instanceof Element) || !focused || !target.contains(focused)) return;
  const isPart = target.matches(".deciders, .whys-body");
  // An answer leads on by itself.
  if (!isPart && requestConfig?.verb === "post") return;
  if (isPart) left = focused.id;
  else onCard = focused.closest("[data-ask]")?.getAttribute("data-call-line") ?? "";
  goesWith = event.type.toLowerCase();
}

/** @param {Event} event */
function keepFocus(event) {
  if (event.type.toLowerCase().replace("after", "before") !== goesWith) return;
  if (document.activeElement === document.body) {
    const next = left ? document.getElementById(left) : onCard && document.querySelector(`[data-ask][data-call-line="${onCard}"]`);
    if (next instanceof HTMLElement) next.focus({ preventScroll: true });
  }
  left = onCard = goesWith = "";
}

/** Places in which a card stood at the last look. @type {WeakSet<Element>} */
const asking = new WeakSet();

/** Say what became of a call in place of its card, in a region that was there before. @param {Element} slot */
function tellOutcome(slot) {
  const asks = slot.querySelector(ASKS) !== null;
  const told = document.querySelector("[data-told]");
  const parts = [...slot.querySelectorAll("[role=status] > :is(.row, .strong, .decided)")].map((part) => part.textContent?.trim());
  if (told && asking.has(slot) && !asks && parts.length) told.textContent = parts.join(" · ");
  if (asks) asking.add(slot);
  else asking.delete(slot);
}

/** Signing in again leads back to the page on which the card stands. @param {Event} event */
function comeBack(event) {
  const link = event.target instanceof Element ? event.target.closest("a[data-sign-in-again]") : null;
  if (!(link instanceof HTMLAnchorElement) || !document.querySelector("[data-conversation], [data-inbox]")) return;
  const url = new URL(link.href);
  url.searchParams.set("next", window.location.pathname + window.location.search);
  link.href = url.href;
}

/** To a value that was not the one on the card, once. @param {Element} field */
function leadTo(field) {
  field.removeAttribute("data-wrong");
  if (field instanceof HTMLElement) field.focus();
}

/** What was typed into reasons, by call and field: a card that is drawn anew is another one. @type {Map<string, string>} */
const typed = new Map();

/** @param {Element} card @param {Element} text */
const fieldOf = (card, text) => `${card.getAttribute("data-call-line")} ${text.id.split("-").pop()}`;

/** @param {Element} card @param {Element} text */
function typeAgain(card, text) {
  const before = typed.get(fieldOf(card, text));
  if (!(text instanceof HTMLTextAreaElement) || text.value || !before) return;
  text.value = before;
  text.dispatchEvent(new Event("input", { bubbles: true }));
}

/** @param {Element} card */
function greet(card) {
  meet(card);
  updateApprove(card);
  card.querySelectorAll(REASONS).forEach((text) => typeAgain(card, text));
}

onSeen(updateApprove);
document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement)) return;
    if (details.matches("[data-fold]") && details.open) details.setAttribute("data-opened", "");
    const card = details.closest(ASKS);
    if (card) updateApprove(card);
  },
  true,
);
document.addEventListener("change", (event) => {
  const card = event.target instanceof Element ? event.target.closest(ASKS) : null;
  if (card) updateApprove(card);
});
document.addEventListener("input", (event) => {
  const card = event.target instanceof Element && event.target.matches("[data-typed]") ? event.target.closest(ASKS) : null;
  if (card) updateApprove(card);
});
document.addEventListener("input", (event) => {
  const text = event.target;
  if (!(text instanceof HTMLTextAreaElement)) return;
  const card = text.closest("[data-ask]");
  if (card && text.matches(REASONS)) typed.set(fieldOf(card, text), text.value);
  if (!text.matches("[data-counted]")) return;
  const count = text.parentElement?.querySelector("[data-count]");
  if (count) count.textContent = String(text.value.length);
});
document.addEventListener("click", endEdit);
document.addEventListener("click", comeBack);
document.addEventListener("click", (event) => {
  const began = event.target instanceof Element ? event.target.closest("[data-begin-edit]") : null;
  began?.closest("details.menu")?.removeAttribute("open");
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute("open");
  }
});

new MutationObserver(() => {
  document.querySelectorAll(ASKS).forEach(greet);
  document.querySelectorAll("[data-wrong]").forEach(leadTo);
  document.querySelectorAll("[data-edit-step]").forEach(meetStep);
  document.querySelectorAll("[data-card-slot]").forEach(tellOutcome);
  tick();
}).observe(document.body, { childList: true, subtree: true });
document.querySelectorAll(ASKS).forEach(greet);
document.querySelectorAll("[data-card-slot]").forEach(tellOutcome);
tick();
setInterval(tick, 1000);
setInterval(look, LOOK_MS);
document.addEventListener("htmx:afterSettle", goOn);
document.addEventListener("htmx:afterSwap", goToOutcome);
document.addEventListener("htmx:oobBeforeSwap", noteFocus);
document.addEventListener("htmx:oobAfterSwap", keepFocus);
document.addEventListener("htmx:beforeSwap", noteFocus);
document.addEventListener("htmx:afterSwap", keepFocus);
