// @ts-check
/** One guard before every answer, wherever a card stands: no press counts that a person may not have meant (SR-39), and no yes to
 * what has not been in view (`gate:seen`). The server leaves *Approve* disabled: without this script nothing is approved. */

import { _ } from "./texts.js";

/** What is answered: a card, or several calls together. */
export const ASKS = "[data-ask], [data-batch]";
const PAUSE_MS = 500;
const LOOK_MS = 100;
/** What a finger or a tremor moves a press by, in px. */
const NEAR = 10;
/** A finger leaves no pointer behind whose moving away could be seen. */
const TOUCH_MS = 2000;
/** A press that ends without a click is forgotten after this long. */
const FORGET_MS = 400;
/** Parts are looked at by rows this high, in px: all of a part has been in view once each of its rows has. */
const ROW = 12;
const PARTS = "h3, .suspect-note, .ask-why, .args > dd, .effect, [data-part]";
/** What is filled in, in a form of a card; what is ticked to confirm something is none of it. */
const WRITING = "textarea, select, .reply input";
const EDIT_PARTS = ".becomes, .change";
/** Keys that go from place to place and never answer. */
const GOING = new Set(["Tab", "Shift", "Control", "Alt", "Meta", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"]);

/** When each card began to stand still. @type {WeakMap<Element, number>} */
const still = new WeakMap();
/** When a button of each card moved last: a pointer may have been on its way to what stood there. @type {WeakMap<Element, number>} */
const moved = new WeakMap();
/** Where each button stood at the last look. @type {WeakMap<Element, DOMRect>} */
const places = new WeakMap();
/** How many rows a part has, and which have been in view. @type {WeakMap<Element, {rows: number, seen: Set<number>}>} */
const views = new WeakMap();
/** The press under way. @type {{card: Element | null, counts: boolean, touch: boolean} | null} */
let press = null;
/** Where the last answer was given, until the pointer has gone from there. @type {{x: number, y: number} | null} */
let answered = null;
/** What else keeps a card's *Approve* from working. @type {(card: Element) => void} */
let update = () => {};

/** Have `listener` update the buttons of a card whenever what has been in view of it changes. @param {(card: Element) => void} listener */
export function onSeen(listener) {
  update = listener;
}

/** @param {EventTarget | null} target @returns {Element | null} */
function cardOf(target) {
  return target instanceof Element ? target.closest(ASKS) : null;
}

/** @param {WeakMap<Element, number>} times @param {Element} card */
function isWithin(times, card) {
  return performance.now() - (times.get(card) ?? -PAUSE_MS) < PAUSE_MS;
}

/** @param {Element} card */
function isFresh(card) {
  return !still.has(card) || isWithin(still, card);
}

/** What does not count yet looks and reads like it. @param {Element} card */
export function show(card) {
  const fresh = isFresh(card) || isWithin(moved, card);
  card.toggleAttribute("data-fresh", fresh);
  for (const button of card.querySelectorAll(".ask-foot .btn, .more-steps .link")) {
    const waits = fresh || (button.matches("[data-approve]") && missing(button).length > 0);
    if (waits) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
}

/** @param {WeakMap<Element, number>} times @param {Element} card */
function pause(times, card) {
  times.set(card, performance.now());
  show(card);
  setTimeout(() => show(card), PAUSE_MS + 1);
}

/** Start, or start again, the pause in which nothing answers this card. @param {Element} card */
export function begin(card) {
  pause(still, card);
}

export function restartGrace(root = document) {
  root.querySelectorAll(ASKS).forEach(begin);
}

/** A card that was not here before. @param {Element} card */
export function meet(card) {
  if (!still.has(card)) begin(card);
}

/** @param {Element} button @returns {Element[]} the parts that have not been in view, of what the button approves */
export function missing(button) {
  const edit = button.closest("[data-edit]");
  const root = edit ?? cardOf(button);
  if (!root) return [];
  return [...root.querySelectorAll(edit ? EDIT_PARTS : PARTS)].filter((part) => isNeeded(part, root) && !isSeen(part));
}

/** What is folded need not be seen, nor what hitlchat offers besides. @param {Element} part @param {Element} root */
function isNeeded(part, root) {
  if (part.closest("details[data-fold]:not([open])") || part.closest(".menu")) return false;
  return root.matches("[data-edit]") || !part.closest("[data-edit]");
}

/** @param {Element} part */
function isSeen(part) {
  const view = views.get(part);
  return view !== undefined && view.seen.size === view.rows;
}

/** Note which rows of `part` are on the screen with nothing before them. @param {Element} part @returns {boolean} whether one is new */
function lookAt(part) {
  const box = part.getBoundingClientRect();
  if (!box.width || !box.height) return false;
  const height = Math.max(box.height, part.scrollHeight > part.clientHeight + 1 && part.clientHeight ? part.scrollHeight : 0);
  const rows = Math.ceil(height / ROW);
  const known = views.get(part);
  const view = known?.rows === rows ? known : { rows, seen: new Set() };
  views.set(part, view);
  const before = view.seen.size;
  for (let row = 0; row < rows; row++) {
    const y = box.top - part.scrollTop + ((row + 0.5) * height) / rows;
    if (view.seen.has(row) || y < Math.max(box.top, 0) || y > Math.min(box.bottom, window.innerHeight)) continue;
    const there = document.elementFromPoint(box.left + Math.min(box.width / 2, NEAR), y);
    if (there && part.contains(there)) view.seen.add(row);
  }
  return view.seen.size !== before;
}

/** @param {Element} card */
function lookAtCard(card) {
  let news = false;
  for (const part of card.querySelectorAll(`${PARTS}, ${EDIT_PARTS}`)) if (!isSeen(part) && lookAt(part)) news = true;
  if (!news) return;
  update(card);
  show(card);
}

/** Did a button of the card come or move since the last look? @param {Element} card */
function hasShifted(card) {
  let shifted = false;
  for (const button of card.querySelectorAll(".ask-foot button[type=submit]")) {
    const now = button.getBoundingClientRect();
    const was = places.get(button);
    places.set(button, now);
    if (now.width && (!was || Math.hypot(now.left - was.left, now.top - was.top) > 3)) shifted = true;
  }
  return shifted;
}

function look() {
  if (document.visibilityState !== "visible") return;
  for (const card of document.querySelectorAll(ASKS)) {
    if (hasShifted(card)) pause(moved, card);
    lookAtCard(card);
  }
}

/** An impatient press puts off every card that it may have been too early for. @param {Element | null} card */
function tooEarly(card) {
  for (const each of document.querySelectorAll(ASKS)) if (each === card || isFresh(each)) begin(each);
}

/** @param {PointerEvent} event */
function isWhereAnswered(event) {
  return answered !== null && Math.hypot(event.clientX - answered.x, event.clientY - answered.y) < NEAR;
}

/** What opens or ticks something answers nothing, wherever it has moved to. @param {EventTarget | null} target */
function mayAnswer(target) {
  return !isTick(target) && !(target instanceof Element && target.closest("summary, [data-begin-edit]"));
}

/** @param {PointerEvent} event */
function pressed(event) {
  look();
  const card = cardOf(event.target);
  const counts = !card || (!isFresh(card) && !(isWithin(moved, card) && mayAnswer(event.target)) && !isWhereAnswered(event));
  press = { card, counts, touch: event.pointerType !== "mouse" };
  tooEarly(counts ? null : card);
  const foot = isWhereAnswered(event) && event.target instanceof Element ? event.target.closest(".ask-foot") : null;
  const why = foot?.querySelector(".why-not");
  if (why) why.textContent = _("Move the pointer first: the last answer was given at this place.");
}

/** @param {KeyboardEvent} event */
function keyed(event) {
  if (GOING.has(event.key) || isWriting(event)) return;
  look();
  const card = cardOf(event.target);
  const counts = !event.repeat && !(card && isFresh(card));
  if (!event.repeat || !press) press = { card, counts, touch: false };
  tooEarly(null);
}

function ended() {
  const own = press;
  setTimeout(() => {
    if (press === own) press = null;
  }, FORGET_MS);
}

/** @param {EventTarget | null} target */
function isTick(target) {
  if (!(target instanceof Element)) return false;
  return Boolean(target.closest("label")?.querySelector("[data-reviewed]") || target.closest("[data-grant-form]"));
}

/** Writing answers nothing, nor does going on with Tab: whoever writes while another card comes or goes must not lose a letter. @param {Event} event */
function isWriting(event) {
  if (event instanceof KeyboardEvent && event.key === "Tab") return true;
  return event.type !== "submit" && event.target instanceof Element && event.target.matches(WRITING);
}

/** @param {Event} event */
function stop(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Bring to view what has not been, and read it out. @param {Element} part */
function lead(part) {
  part.closest("details:not([open])")?.setAttribute("open", "");
  part.scrollIntoView({ block: part.getBoundingClientRect().height < window.innerHeight / 2 ? "center" : "start" });
  if (!part.hasAttribute("tabindex")) part.setAttribute("tabindex", "-1");
  if (part instanceof HTMLElement) part.focus({ preventScroll: true });
}

/** @param {Event} event @returns {Element | null} the button that would approve */
function approving(event) {
  const target = event instanceof SubmitEvent ? event.submitter ?? event.target : event.target;
  if (!(target instanceof Element)) return null;
  return target.matches("form") ? target.querySelector("[data-approve]") : target.closest("[data-approve]");
}

/** @param {Event} event */
function judge(event) {
  const card = cardOf(event.target);
  const own = event.isTrusted && event.type === "click" ? press : null;
  if (event.type === "click") press = null;
  if (!card || isTick(event.target) || isWriting(event)) return;
  // A click that no press began comes from a program that helps the person: it has had its pause too.
  if (isFresh(card) || (own && (own.card !== card || !own.counts))) return stop(event);
  if (event.type === "keydown") return;
  const button = approving(event);
  const [first] = button ? missing(button) : [];
  if (first) {
    stop(event);
    lead(first);
  } else if (event instanceof MouseEvent && event.detail && event.target instanceof Element && event.target.closest(".ask-foot button[type=submit]")) {
    remember(event, own?.touch ?? false);
  }
}

/** @param {MouseEvent} event @param {boolean} touch */
function remember(event, touch) {
  const here = { x: event.clientX, y: event.clientY };
  answered = here;
  if (touch) setTimeout(() => answered === here && (answered = null), TOUCH_MS);
}

document.addEventListener("pointerdown", pressed, true);
document.addEventListener("keydown", keyed, true);
for (const kind of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(kind, ended, true);
document.addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse" && answered && !isWhereAnswered(event)) answered = null;
});
for (const kind of ["click", "keydown", "submit"]) document.addEventListener(kind, judge, true);
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (target instanceof HTMLTextAreaElement && !target.closest("[data-ask]") && !GOING.has(event.key)) restartGrace();
});
document.addEventListener("visibilitychange", () => restartGrace());
window.addEventListener("focus", () => restartGrace());
document.addEventListener("scroll", () => requestAnimationFrame(look), true);
setInterval(look, LOOK_MS);
