// @ts-check
/** One guard before every answer, wherever a card stands: no press counts that a person may not have meant (SR-39), and no yes to
 * what has not been in view (`gate:seen`). The server leaves *Approve* disabled: without this script nothing is approved. */

import { _ } from "./texts.js";

/** What is answered: a card, several calls together, or what a server asks a person, or a client its user. */
export const ASKS = "[data-ask], [data-batch], [data-elicited]";
/** Where the buttons that answer stand. */
const FOOT = ":is(.ask-foot, [data-answers])";
const PAUSE_MS = 500;
const LOOK_MS = 100;
/** How far into a part it is looked whether something lies above it, in px. */
const NEAR = 10;
/** A press nearer than this to where the pointer was all the time, or to another tap, is no new act; in px. A tremor stays within it. */
const AWAY = 40;
/** A finger leaves no pointer behind whose coming could be seen: a tap is a new act once nothing near was tapped for so long. */
const TAPS_MS = 1500;
/** A key that comes this soon after a printable one is part of typing. */
const TYPING_MS = 1000;
/** The mouse's way is kept in steps of so many px, and so many of them. */
const STEP = 4;
const MOST_STEPS = 1000;
/** A press that ends without a click is forgotten after this long. */
const FORGET_MS = 400;
/** Parts are looked at by rows this high, in px: all of a part has been in view once each of its rows has. */
const ROW = 12;
const PARTS = "h3, .suspect-note, .ask-why, .args > dd, .effect, [data-part]";
/** What is filled in, in a form of a card; what is ticked to confirm something is none of it. */
const WRITING = "textarea, select, .asked input, [data-typed]";
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
/** Why the last press on each card did not count, and what to do. @type {WeakMap<Element, string>} */
const hints = new WeakMap();
/** The press under way, and what to say if it does not count. @type {{card: Element | null, counts: boolean, words: string} | null} */
let press = null;
/** Where the mouse was, and since when. @type {{x: number, y: number, at: number}[]} */
const way = [];
/** The taps that are not long ago. @type {{x: number, y: number, at: number}[]} */
let taps = [];
/** When a mouse button went down last, on what could be an answer. */
let pressedAt = -Infinity;
/** When a printable key went down last, and whether the key under way came soon after one. */
let typedAt = -Infinity;
let asTyping = false;
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

/** Is the mouse on a button of the card, or nearly? @param {Element} card */
function isPointedAt(card) {
  const [last] = way.slice(-1);
  if (!last) return false;
  return [...card.querySelectorAll(`${FOOT} button[type=submit]`)].some((button) => {
    const box = button.getBoundingClientRect();
    const beyond = { x: Math.max(box.left - last.x, 0, last.x - box.right), y: Math.max(box.top - last.y, 0, last.y - box.bottom) };
    return button.checkVisibility() && Math.hypot(beyond.x, beyond.y) < AWAY;
  });
}

/** What does not count yet looks and reads like it; what has just moved does so only at the mouse, so that nothing flickers elsewhere. @param {Element} card */
export function show(card) {
  const fresh = isFresh(card);
  const shifted = isWithin(moved, card);
  const early = fresh || (shifted && isPointedAt(card));
  card.toggleAttribute("data-fresh", fresh || shifted);
  card.toggleAttribute("data-early", early);
  for (const button of card.querySelectorAll(`${FOOT} .btn, .more-steps .link`)) {
    const waits = early || (button.matches("[data-approve]") && missing(button).length > 0);
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
  for (const button of card.querySelectorAll(`${FOOT} button[type=submit]`)) {
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

/** @param {EventTarget | null} target @returns {HTMLButtonElement | null} the button that would answer, with a yes or a no */
function answerOf(target) {
  const button = target instanceof Element ? target.closest("button") : null;
  if (button?.type !== "submit") return null;
  return button.form?.elements.namedItem("verdict") || button.closest("[data-answers]") ? button : null;
}

/** What opens or ticks something answers nothing, wherever it has moved to. @param {EventTarget | null} target */
function mayAnswer(target) {
  return !isTick(target) && !(target instanceof Element && target.closest("summary, [data-begin-edit]"));
}

/** Asking the model why allows nothing, so it needs no pause. @param {EventTarget | null} target */
function isAskingWhy(target) {
  return target instanceof Element && target.closest(".whys") !== null && !target.closest(`${FOOT}, [data-approve]`);
}

/** Whether the key that is down came as typing does: no such key answers, and the card says so. @param {Element} card */
export function comesAsTyping(card) {
  if (asTyping) setHint(card, typedWords());
  return asTyping;
}

function typedWords() {
  return _("You typed a moment ago. Wait a second, then press the key again.");
}

/** @param {Element} card @returns {string} what the person can do after a press that did not count */
export function hint(card) {
  return hints.get(card) ?? "";
}

/** Not before the press has ended: words that come or go may move the button away from under it. @param {Element} card @param {string} words */
function setHint(card, words) {
  if (hint(card) === words) return;
  hints.set(card, words);
  update(card);
}

/** @param {{x: number, y: number}} one @param {{x: number, y: number}} other */
function isNear(one, other) {
  return Math.hypot(one.x - other.x, one.y - other.y) < AWAY;
}

/** @param {PointerEvent} event */
function follow(event) {
  if (event.pointerType !== "mouse") return;
  const [last] = way.slice(-1);
  if (last && Math.hypot(event.clientX - last.x, event.clientY - last.y) < STEP) return;
  way.push({ x: event.clientX, y: event.clientY, at: performance.now() });
  if (way.length > MOST_STEPS) way.shift();
  const card = cardOf(event.target);
  if (card && isWithin(moved, card)) show(card);
}

/** Has the mouse come onto the button from elsewhere, since the card stood still and since the last press? @param {Element} button @param {Element} card @param {PointerEvent} event */
function hasEntered(button, card, event) {
  const since = Math.max(...[still, moved].map((times) => (times.get(card) ?? -PAUSE_MS) + PAUSE_MS), pressedAt);
  const first = way.findLastIndex((place) => place.at <= since);
  const box = button.getBoundingClientRect();
  const isOutside = (/** @type {{x: number, y: number}} */ { x, y }) => x < box.left || x > box.right || y < box.top || y > box.bottom;
  return way.slice(Math.max(first, 0)).some((place) => isOutside(place) && !isNear(place, { x: event.clientX, y: event.clientY }));
}

/** A finger, or a pen. @param {PointerEvent} event */
function isRepeatedTap(event) {
  const at = performance.now();
  const here = { x: event.clientX, y: event.clientY, at };
  taps = taps.filter((tap) => at - tap.at < TAPS_MS);
  const repeated = taps.some((tap) => isNear(tap, here));
  taps.push(here);
  return repeated;
}

/** @param {PointerEvent} event */
function pressed(event) {
  look();
  const card = cardOf(event.target);
  const button = card && answerOf(event.target);
  const isMouse = event.pointerType === "mouse";
  const early = card !== null && (isFresh(card) || (isWithin(moved, card) && mayAnswer(event.target)));
  const repeated = isMouse ? button && !hasEntered(button, card, event) : isRepeatedTap(event) && button;
  const words = isMouse ? _("Move the pointer away from the button and back, then press.") : _("Wait two seconds, then tap once.");
  press = { card, counts: !early && !repeated, words: button ? words : "" };
  if (isMouse && mayAnswer(event.target)) pressedAt = performance.now();
  tooEarly(early ? card : null);
}

/** @param {KeyboardEvent} event */
function isPrintable(event) {
  return event.key?.length === 1 && (event.getModifierState("AltGraph") || !(event.ctrlKey || event.metaKey || event.altKey));
}

/** @param {KeyboardEvent} event */
function keyed(event) {
  asTyping = performance.now() - typedAt < TYPING_MS;
  if (isPrintable(event)) typedAt = performance.now();
  if (GOING.has(event.key) || isWriting(event)) return;
  look();
  const card = cardOf(event.target);
  const typed = asTyping && answerOf(event.target) !== null;
  const counts = !event.repeat && !typed && !(card && isFresh(card));
  const words = typed ? typedWords() : "";
  if (!event.repeat || !press) press = { card, counts, words };
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
  return Boolean(target.closest("label")?.querySelector("[data-reviewed], [name=agreed]") || target.closest("[data-grant-form]"));
}

/** Writing answers nothing, nor does going on with Tab: whoever writes while another card comes or goes must not lose a letter. @param {Event} event */
function isWriting(event) {
  if (event instanceof KeyboardEvent && event.key === "Tab") return true;
  return event.type !== "submit" && event.target instanceof Element && event.target.matches(WRITING);
}

/** A letter presses no button, so that none of what is typed is lost. @param {Event} event */
function isLetter(event) {
  return event instanceof KeyboardEvent && isPrintable(event) && event.key !== " ";
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
  if (!card || isTick(event.target) || isAskingWhy(event.target) || isWriting(event) || isLetter(event)) return;
  const fresh = isFresh(card);
  if (event.type === "keydown") return fresh ? stop(event) : undefined;
  const button = fresh ? null : approving(event);
  const [first] = button ? missing(button) : [];
  // A click that no press began comes from a program that helps the person: it has had its pause too.
  const counts = !fresh && !(own && (own.card !== card || !own.counts));
  if (first || !counts) stop(event);
  if (first) lead(first);
  else setHint(card, counts ? "" : own?.words ?? "");
}

document.addEventListener("pointerdown", pressed, true);
document.addEventListener("keydown", keyed, true);
for (const kind of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(kind, ended, true);
document.addEventListener("pointermove", follow, true);
for (const kind of ["click", "keydown", "submit"]) document.addEventListener(kind, judge, true);
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (target instanceof HTMLTextAreaElement && !cardOf(target) && !GOING.has(event.key)) restartGrace();
});
document.addEventListener("visibilitychange", () => restartGrace());
window.addEventListener("focus", () => restartGrace());
document.addEventListener("scroll", () => requestAnimationFrame(look), true);
setInterval(look, LOOK_MS);
