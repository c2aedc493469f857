// @ts-check
/** Copies what stands beside a button; and keeps a page that shows a new token from making another when reloaded. */

import { _ } from "./texts.js";

const TOLD_MS = 2000;

/** @param {Element} element */
function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

/**
 * Have the button copy `text`, or what `source` says; where a page may not copy, `source` is selected.
 * @param {HTMLElement} button @param {Element} source @param {() => Promise<string> | string} text
 */
export function connectCopy(button, source, text = () => source.textContent ?? "") {
  const words = [...button.childNodes];
  const told = document.createElement("span");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(await text());
      told.textContent = _("Copied");
    } catch {
      // Pages without HTTPS may not write there, save those of this machine.
      select(source);
      told.textContent = _("Selected: press Ctrl+C");
    }
    button.replaceChildren(told);
    announce(told.textContent);
    setTimeout(() => button.replaceChildren(...words), TOLD_MS);
  });
}

const status = document.createElement("p");
status.className = "sr";
status.setAttribute("role", "status");
document.querySelector("main")?.append(status);

/** @param {string} text */
function announce(text) {
  status.textContent = text;
  setTimeout(() => (status.textContent = ""), TOLD_MS);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.getAttribute("data-copy") ?? "");
  if (source && button instanceof HTMLElement) connectCopy(button, source);
}

const made = document.querySelector("[data-made-at]");
if (made instanceof HTMLElement && made.dataset.madeAt) history.replaceState(null, "", made.dataset.madeAt);
