// @ts-check
/** Single keys of the inbox. They can be switched off (WCAG 2.1.4), and never count while somebody writes. */

import { card, chosen, chosenLine, lineOf, lines, pick } from "./inbox_chosen.js";
import { clearSelection, toggle } from "./inbox_select.js";
import { isWriting } from "./menu.js";

const KEY = "hitlchat-single-keys";
/** From this level on a key decides nothing. */
const CONFIRMED_FROM = 4;

const dialog = /** @type {HTMLDialogElement} */ (document.querySelector("[data-keys]"));
const switchBox = /** @type {HTMLInputElement} */ (dialog.querySelector("[data-single-keys]"));
const told = /** @type {HTMLElement} */ (document.querySelector("[data-told]"));

function areOn() {
  return localStorage.getItem(KEY) !== "off";
}

function showSwitch() {
  switchBox.checked = areOn();
  document.querySelector("[data-single-keys-on]")?.toggleAttribute("hidden", !areOn());
  document.querySelector("[data-single-keys-off]")?.toggleAttribute("hidden", areOn());
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

/** The card, once what is done to it counts. */
function ready() {
  const found = card();
  return found && !found.hasAttribute("data-fresh") && !found.hasAttribute("data-over") ? found : null;
}

function approve() {
  const found = ready();
  const button = found?.querySelector(":scope > .ask-foot [data-approve]");
  if (!found || !(button instanceof HTMLButtonElement)) return;
  if (Number(found.dataset.level) < CONFIRMED_FROM) {
    // While its arguments are being changed, which yes is meant is for the person to say.
    if (found.querySelector("[data-edit]")?.childElementCount) return;
    button.click();
    return;
  }
  const fold = found.querySelector("details[data-fold]:not([data-opened]) > summary");
  const tick = found.querySelector(":scope > .check [data-reviewed]");
  const unconfirmed = tick instanceof HTMLInputElement && !tick.checked ? tick : null;
  const next = fold ?? unconfirmed ?? button;
  if (next instanceof HTMLElement) next.focus();
}

/** Asks for the reason, which answers nothing yet. */
function declineWithReason() {
  const because = card()?.querySelector(":scope:not([data-over]) details.because");
  const text = because?.querySelector("textarea");
  if (!because || !text) return;
  because.setAttribute("open", "");
  text.focus();
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
const KEYS = { j: () => step(1), k: () => step(-1), x: select, a: approve, r: declineWithReason, "?": () => dialog.showModal() };

/** What Enter does by itself. @param {EventTarget | null} target */
function hasOwnEnter(target) {
  return target instanceof Element && Boolean(target.closest("a, button, summary, input, textarea, select"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return clear();
  if (event.key === "Enter" && !hasOwnEnter(event.target)) return open();
  const act = KEYS[event.key.toLowerCase()];
  if (!act || !areOn() || event.repeat && !"jk".includes(event.key) || isWriting(event.target)) return;
  event.preventDefault();
  act();
});
document.querySelector("[data-show-keys]")?.addEventListener("click", () => dialog.showModal());
dialog.querySelector("[data-close-keys]")?.addEventListener("click", () => dialog.close());
switchBox.addEventListener("change", () => {
  localStorage.setItem(KEY, switchBox.checked ? "on" : "off");
  showSwitch();
});
showSwitch();
