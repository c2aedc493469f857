// @ts-check
/** Narrows a list to the lines that have what is typed; without it the whole list is there. Ticked lines always stay. */

import { _ } from "./texts.js";

/** @param {HTMLElement} field */
function connect(field) {
  const input = field.querySelector("input");
  const status = field.querySelector("[role=status]");
  const list = document.getElementById(field.dataset.sift ?? "");
  if (!input || !status || !list) return;

  function sift() {
    const wanted = input?.value.trim().toLowerCase() ?? "";
    const lines = /** @type {HTMLElement[]} */ ([...(list?.querySelectorAll("li") ?? [])]);
    for (const line of lines) {
      const fits = (line.textContent ?? "").toLowerCase().includes(wanted);
      line.hidden = !fits && !line.querySelector("input:checked");
    }
    const left = lines.filter((line) => !line.hidden).length;
    if (status) status.textContent = wanted ? _("{left} of {all}", { left, all: lines.length }) : "";
  }

  field.hidden = false;
  input.addEventListener("input", sift);
  input.addEventListener("keydown", (event) => {
    // It stands in a form, which this key would send.
    if (event.key === "Enter") event.preventDefault();
  });
  // The list may be drawn anew at any time.
  new MutationObserver(sift).observe(list, { childList: true, subtree: true });
  sift();
}

document.querySelectorAll("[data-sift]").forEach((field) => connect(/** @type {HTMLElement} */ (field)));
