// @ts-check
/** What keys do to a card. Single keys can be switched off (WCAG 2.1.4); what keys press is guarded like any press. */

const KEY = "hitlchat-single-keys";
/** From this level on a key decides nothing. */
const CONFIRMED_FROM = 4;

export function areKeysOn() {
  return localStorage.getItem(KEY) !== "off";
}

/** @param {boolean} on */
export function switchKeys(on) {
  localStorage.setItem(KEY, on ? "on" : "off");
}

/** @param {HTMLElement} card */
export function approveByKey(card) {
  if (card.hasAttribute("data-question")) return begin(card);
  const button = card.querySelector(":scope > .ask-foot [data-approve]");
  if (!isReady(card) || !(button instanceof HTMLButtonElement)) return;
  const isHigh = Number(card.dataset.level) >= CONFIRMED_FROM;
  // While its arguments are being changed, which yes is meant is for the person to say.
  if (!isHigh && card.querySelector("[data-edit]")?.childElementCount) return;
  const fold = isHigh ? card.querySelector("details[data-fold]:not([data-opened]) > summary") : null;
  const tick = card.querySelector(":scope > .check [data-reviewed]:not(:checked)");
  const next = fold ?? tick ?? card.querySelector("[data-typed]:invalid") ?? button;
  if (next === button && !isHigh) button.click();
  else if (next instanceof HTMLElement) next.focus();
}

/** Go to the form of a question, which answers nothing yet: no key can. @param {HTMLElement} card */
function begin(card) {
  const first = card.querySelector(".reply :is(input:not([type=hidden]), textarea, select)");
  if (isReady(card) && first instanceof HTMLElement) first.focus();
}

/** @param {HTMLElement} card */
export function declineAtOnce(card) {
  const button = card.querySelector(":scope > .ask-foot .decline > form button");
  if (isReady(card) && button instanceof HTMLButtonElement) button.click();
}

/** Ask for the reason, which answers nothing yet. @param {HTMLElement} card */
export function declineByKey(card) {
  const because = isReady(card) ? card.querySelector("details.because") : null;
  const text = because?.querySelector("textarea");
  if (!because || !text) return;
  because.querySelector("details[open]")?.removeAttribute("open");
  because.setAttribute("open", "");
  text.focus();
}

/** Open the form for its arguments, which answers nothing yet. @param {HTMLElement} card */
export function editByKey(card) {
  const button = card.querySelector("[data-begin-edit]");
  if (isReady(card) && button instanceof HTMLButtonElement) button.click();
}

/** Does what is done to it count yet, and still? @param {HTMLElement} card */
function isReady(card) {
  return !card.hasAttribute("data-fresh") && !card.hasAttribute("data-over");
}
