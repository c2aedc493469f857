// @ts-check
/** Single keys of the inbox. They can be switched off (WCAG 2.1.4), and never count while somebody writes. */

import { approveByKey, areKeysOn, declineByKey, editByKey, switchKeys } from "./card_keys.js";
import { card, cardTitle, chosen, chosenLine, lineOf, lines, pick } from "./inbox_chosen.js";
import { clearSelection, toggle } from "./inbox_select.js";
import { comesAsTyping } from "./guard.js";
import { isWriting } from "./menu.js";

/** A letter that another one follows sooner than this was the first of something typed. */
const ALONE_MS = 500;

const dialog = /** @type {HTMLDialogElement} */ (document.querySelector("[data-keys]"));
const switchBox = /** @type {HTMLInputElement} */ (dialog.querySelector("[data-single-keys]"));
const told = /** @type {HTMLElement} */ (document.querySelector("[data-told]"));

function showSwitch() {
  switchBox.checked = areKeysOn();
  document.querySelector("[data-single-keys-on]")?.toggleAttribute("hidden", !areKeysOn());
  document.querySelector("[data-single-keys-off]")?.toggleAttribute("hidden", areKeysOn());
}

/** To the next line or the one before. What the page shows by itself is chosen first; after an answer, what stands beside it. @param {number} by */
function step(by) {
  const all = lines();
  const shown = lineOf(chosen());
  const from = chosenLine() ?? all.find((line) => line.contains(document.activeElement));
  const next = from === undefined ? shown ?? all[0] : from === chosenLine() ? all[all.indexOf(from) + by] : from;
  if (next) pick(next, { focus: true, soon: true });
}

function open() {
  const line = chosenLine();
  if (line) pick(line, { enter: true });
}

function select() {
  const box = chosenLine()?.querySelector("[data-pick]");
  if (box instanceof HTMLInputElement) told.textContent = toggle(box);
}

/** What a letter will do to the card, unless another key follows at once. */
let letter = { key: "", timer: 0 };

/** Only from the chosen line or from the head above its card, and never as part of something typed. @param {string} key @param {(card: HTMLElement) => void} act */
function onCard(key, act) {
  const found = card();
  const isChosenFor = document.activeElement === cardTitle || chosenLine()?.contains(document.activeElement);
  // Pressed again before it acts, it is one press.
  if (!found || !isChosenFor || letter.timer || comesAsTyping(found)) return;
  const timer = window.setTimeout(() => {
    letter.timer = 0;
    if (found === card()) act(found);
  }, ALONE_MS);
  letter = { key, timer };
}

/** @param {Event} event */
function dropLetter(event) {
  if (event instanceof KeyboardEvent && event.key.toLowerCase() === letter.key) return;
  clearTimeout(letter.timer);
  letter.timer = 0;
}

/** Out of the reason to its line, where letters act again. @param {KeyboardEvent} event */
function leaveReason(event) {
  const because = event.key === "Escape" && document.activeElement?.closest("details.because[open]");
  if (!because) return;
  event.preventDefault();
  because.removeAttribute("open");
  const link = lineOf(chosen())?.querySelector("div > a");
  if (link instanceof HTMLElement) link.focus();
}

/** @type {Record<string, () => void>} */
const KEYS = { j: () => step(1), k: () => step(-1), x: select, a: () => onCard("a", approveByKey), r: () => onCard("r", declineByKey), e: () => onCard("e", editByKey), "?": () => dialog.showModal() };

/** What Enter does by itself. @param {EventTarget | null} target */
function hasOwnEnter(target) {
  return target instanceof Element && Boolean(target.closest("a, button, summary, input, textarea, select"));
}

for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, dropLetter, true);
document.addEventListener("keydown", leaveReason, true);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return clearSelection();
  if (event.key === "Enter" && !hasOwnEnter(event.target)) return open();
  const act = KEYS[event.key.toLowerCase()];
  if (!act || !areKeysOn() || event.repeat && !"jk".includes(event.key) || isWriting(event.target)) return;
  event.preventDefault();
  act();
});
document.querySelector("[data-show-keys]")?.addEventListener("click", () => dialog.showModal());
dialog.querySelector("[data-close-keys]")?.addEventListener("click", () => dialog.close());
switchBox.addEventListener("change", () => {
  switchKeys(switchBox.checked);
  showSwitch();
});
showSwitch();
