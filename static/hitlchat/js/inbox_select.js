// @ts-check
/** Several calls selected, to be answered together once they are listed. */

import { fill, forget, slot } from "./inbox_chosen.js";
import { _ } from "./texts.js";

const OTHER_TOOL = _("Select only calls to the same tool.");
const MOST = 50;

const main = /** @type {HTMLElement} */ (document.querySelector("[data-inbox]"));
const list = /** @type {HTMLElement} */ (document.querySelector("#waiting"));
const bar = /** @type {HTMLElement} */ (document.querySelector("[data-selected]"));
const count = /** @type {HTMLElement} */ (bar.querySelector("[data-selected-count]"));
const review = /** @type {HTMLButtonElement} */ (bar.querySelector("[data-review]"));

/** By the mark of its line: asked again, it is another question. @type {Set<string>} */
const selected = new Set();

/** @returns {HTMLInputElement[]} */
function boxes() {
  return [...list.querySelectorAll("input[data-pick]")].filter((box) => box instanceof HTMLInputElement);
}

/** @param {Element} box */
function line(box) {
  return /** @type {HTMLElement} */ (box.closest("[data-line]"));
}

function chosenBoxes() {
  return boxes().filter((box) => selected.has(line(box).dataset.line ?? ""));
}

function show() {
  const chosen = chosenBoxes();
  const kind = chosen.length ? line(chosen[0]).dataset.together : "";
  for (const box of boxes()) {
    box.checked = chosen.includes(box);
    const alone = box.dataset.alone ?? "";
    const other = !alone && kind && line(box).dataset.together !== kind ? OTHER_TOOL : "";
    box.disabled = Boolean(alone || other);
    box.title = alone || other;
  }
  bar.hidden = !chosen.length;
  count.textContent = _("{many} selected", { many: chosen.length });
  review.disabled = chosen.length < 2 || chosen.length > MOST;
  review.textContent = chosen.length > 1 ? _("Review {many}", { many: chosen.length }) : _("Select another to answer them together");
}

/** The list came anew: what has gone is selected no more. */
export function keepSelection() {
  const here = new Set(boxes().map((box) => line(box).dataset.line));
  for (const mark of selected) if (!here.has(mark)) selected.delete(mark);
  show();
}

/** The first line behind the selected ones that is not selected, else the last one before them. @returns {HTMLElement | undefined} */
export function afterSelected() {
  const [first] = chosenBoxes();
  const rest = boxes().filter((box) => !selected.has(line(box).dataset.line ?? ""));
  const next = rest.find((box) => first && first.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING) ?? rest.at(-1);
  return next && line(next);
}

/** Whether there was anything. */
export function clearSelection() {
  const any = selected.size > 0;
  selected.clear();
  show();
  return any;
}

/** @param {HTMLInputElement} box @returns {string} why it cannot be, or nothing */
export function toggle(box) {
  if (box.disabled) return box.title;
  set(box, !selected.has(line(box).dataset.line ?? ""));
  show();
  return "";
}

/** @param {HTMLInputElement} box @param {boolean} on */
function set(box, on) {
  const mark = line(box).dataset.line ?? "";
  if (on) selected.add(mark);
  else selected.delete(mark);
}

async function listThem() {
  const url = new URL(review.dataset.review ?? "", window.location.href);
  for (const box of chosenBoxes()) url.searchParams.append("call", line(box).dataset.call ?? "");
  main.setAttribute("data-picked", "");
  forget();
  await fill(url.pathname + url.search);
  const title = /** @type {HTMLElement} */ (document.querySelector("#card-title"));
  title.focus({ preventScroll: true });
  slot.scrollIntoView({ block: "nearest" });
}

list.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.matches("[data-pick]")) return;
  set(box, box.checked);
  show();
});
list.addEventListener("click", (event) => {
  const all = event.target instanceof Element ? event.target.closest("[data-select-all]") : null;
  if (!all) return;
  const own = boxes().filter((box) => all.closest("[data-burst]")?.contains(box) && !box.dataset.alone);
  selected.clear();
  own.forEach((box) => set(box, true));
  show();
});
bar.querySelector("[data-select-none]")?.addEventListener("click", () => {
  clearSelection();
  /** @type {HTMLElement} */ (document.querySelector("#inbox-title")).focus();
});
review.addEventListener("click", listThem);
show();
