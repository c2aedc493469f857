// @ts-check
/** The rows of variables: added and removed without a round trip, and secrets not readable while they are typed. */

import { _ } from "./texts.js";

/** @param {Element} row */
function hideSecret(row) {
  const kind = row.querySelector("[data-kind]");
  const value = row.querySelector("[data-value]");
  if (!(kind instanceof HTMLSelectElement) || !(value instanceof HTMLInputElement)) return;
  const isReference = /^\$\{\w*\}?$/.test(value.value);
  value.type = kind.value === "secret" && !isReference ? "password" : "text";
  // A browser offers to keep what stands in a field of passwords, unless it is told that it is a new one.
  value.autocomplete = kind.value === "secret" ? "new-password" : "off";
}

/** @param {HTMLFormElement} form @param {() => void} changed */
export function connectRows(form, changed) {
  const rows = form.querySelector("[data-rows]");
  const add = form.querySelector("[data-add]");
  const spare = [...(rows?.querySelectorAll("[data-spare]") ?? [])];
  const blank = /** @type {Element | undefined} */ (spare.at(-1)?.cloneNode(true));
  if (!rows || !add || !blank) return;
  // Without a script they are there to be filled in; with one, they come when they are wanted.
  spare.forEach((row) => row.remove());
  let number = rows.children.length;

  const connect = (/** @type {Element} */ row) => {
    hideSecret(row);
    row.querySelector("[data-remove]")?.removeAttribute("hidden");
  };
  add.removeAttribute("hidden");
  add.addEventListener("click", () => {
    const row = /** @type {Element} */ (blank.cloneNode(true));
    number += 1;
    for (const part of row.querySelectorAll("[id], [for]")) {
      for (const name of ["id", "for"]) {
        const value = part.getAttribute(name);
        if (value) part.setAttribute(name, value.replace(/\d+$/, String(number)));
      }
    }
    const legend = row.querySelector("legend");
    if (legend) legend.textContent = _("Variable {number}", { number });
    rows.append(row);
    connect(row);
    row.querySelector("input")?.focus();
  });
  form.addEventListener("click", (event) => {
    const row = event.target instanceof Element && event.target.closest("[data-remove]")?.closest("[data-row]");
    if (!row) return;
    row.remove();
    if (add instanceof HTMLElement) add.focus();
    changed();
  });
  for (const kind of ["input", "change"]) {
    form.addEventListener(kind, (event) => {
      const row = event.target instanceof Element && event.target.closest("[data-row]");
      if (row) hideSecret(row);
    });
  }
  rows.querySelectorAll("[data-row]").forEach(connect);
}
