// @ts-check
/** The box one writes in, the same on every page: Enter sends, and what is not sent yet outlives a reload. */

import { isWriting } from "./menu.js";

/**
 * Enter sends, Shift and Enter starts a line. It may have been pressed already.
 * @param {HTMLFormElement} form
 * @param {() => boolean} maySend
 */
export function sendOnEnter(form, maySend) {
  form.querySelector("textarea")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    if (maySend()) form.requestSubmit();
  });
  form.dataset.ready = "";
  // Once the page's script is through, with the draft and its files.
  if ("due" in form.dataset) queueMicrotask(() => maySend() && form.requestSubmit());
}

/** Keys that the page itself has a use for, outside of fields: to scroll or press, and to list the keys. */
const OWN = [" ", "?"];

/**
 * What is typed outside of fields is written here.
 * @param {HTMLTextAreaElement} textarea
 */
export function takeTyping(textarea) {
  document.addEventListener("keydown", (event) => {
    const writes = event.key?.length === 1 ? !OWN.includes(event.key) : ["Dead", "Process"].includes(event.key);
    const chord = !event.getModifierState?.("AltGraph") && (event.ctrlKey || event.metaKey || event.altKey);
    if (!writes || chord || event.defaultPrevented || isWriting(event.target) || document.querySelector("dialog:modal")) return;
    // The character arrives where the focus is by then.
    textarea.focus();
  });
}

/**
 * What stood in the box when the page was left stands there again; each address has its own draft, in this tab alone.
 * @param {HTMLTextAreaElement} textarea
 */
export function keepDraft(textarea) {
  const key = `draft:${window.location.pathname}`;
  textarea.value ||= sessionStorage.getItem(key) ?? "";
  const keep = () => (textarea.value ? sessionStorage.setItem(key, textarea.value) : sessionStorage.removeItem(key));
  textarea.addEventListener("input", keep);
  return { keep };
}
