// @ts-check
/** Single keys of the inbox. They can be switched off (WCAG 2.1.4), and never count while somebody writes. */

import { approveByKey, areKeysOn, declineByKey, editByKey, switchKeys } from "./card_keys.js";
import { card, chosen, chosenLine, lineOf, lines, pick } from "./inbox_chosen.js";
import { clearSelection, toggle } from "./inbox_select.js";
import { isWriting } from "./menu.js";

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

/** @param {(card: HTMLElement) => void} act */
function onCard(act) {
  const found = card();
  if (found) act(found);
}

/** Out of the reason, then of the selection. */
function clear() {
  const because = document.activeElement?.closest("details.because");
  if (!because) {
    clearSelection();
    return;
  }
  because.removeAttribute("open");
  const link = lineOf(chosen())?.querySelector("div > a");
  if (link instanceof HTMLElement) link.focus();
}

/** @type {Record<string, () => void>} */
const KEYS = { j: () => step(1), k: () => step(-1), x: select, a: () => onCard(approveByKey), r: () => onCard(declineByKey), e: () => onCard(editByKey), "?": () => dialog.showModal() };

/** What Enter does by itself. @param {EventTarget | null} target */
function hasOwnEnter(target) {
  return target instanceof Element && Boolean(target.closest("a, button, summary, input, textarea, select"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return clear();
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
