// @ts-check
/** A text that a field would cut is not pasted at all, and the page says so; a conversation takes it as a file instead. Nor is a file sent that the server would refuse for its size. */

import "./composing.js";
import { _ } from "./texts.js";

/** @typedef {HTMLInputElement | HTMLTextAreaElement} Field */

/** What a form does with a text too long for its field, in place of a refusal. @type {WeakMap<Element, (text: string) => void>} */
const instead = new WeakMap();

/** @param {HTMLFormElement} form @param {(text: string) => void} take */
export const takesInstead = (form, take) => void instead.set(form, take);

/** @param {number} count */
const inWords = (count) => count.toLocaleString(document.documentElement.lang);

/** Where a field says that something did not fit, made at the first time. @param {Field} field */
function note(field) {
  const next = field.nextElementSibling;
  if (next instanceof HTMLElement && "tooLong" in next.dataset) return next;
  const made = document.createElement("p");
  made.dataset.tooLong = "";
  made.className = "problem small";
  made.setAttribute("role", "alert");
  field.after(made);
  field.addEventListener("input", () => made.remove(), { once: true });
  return made;
}

/** @param {Field} field @param {string} text */
function fits(field, text) {
  const replaced = (field.selectionEnd ?? 0) - (field.selectionStart ?? 0);
  // As the browser counts: an end of a line is one character.
  return field.maxLength < 0 || field.value.length - replaced + text.replaceAll("\r\n", "\n").length <= field.maxLength;
}

document.addEventListener(
  "paste",
  (event) => {
    const field = event.target;
    if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) || field.readOnly) return;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (fits(field, text)) return;
    event.preventDefault();
    event.stopPropagation();
    const values = { count: inWords(text.length), most: inWords(field.maxLength) };
    const take = field.form && field instanceof HTMLTextAreaElement && instead.get(field.form);
    if (take) take(text);
    note(field).textContent = take
      ? _("The text has {count} characters, and a message holds at most {most}, so the text was attached as a file.", values)
      : _("Nothing was pasted: the text has {count} characters, and this field holds at most {most}.", values);
  },
  true,
);

document.addEventListener("change", (event) => {
  const field = event.target;
  if (!(field instanceof HTMLInputElement) || !field.dataset.largest || (field.files?.[0]?.size ?? 0) <= Number(field.dataset.largest)) return;
  note(field).textContent = field.dataset.tooLarge ?? "";
  field.value = "";
});
