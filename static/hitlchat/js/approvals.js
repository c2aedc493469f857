// @ts-check
/** The list of what waits: it comes anew by itself, and whoever is on one of its lines is not thrown off it. */

import "./cards.js";

const list = /** @type {HTMLElement} */ (document.querySelector("#waiting"));
/** The place in the list of the link that has the focus; -1 if none has. */
let place = -1;

/** @returns {HTMLElement[]} */
function lines() {
  return [...list.querySelectorAll(".waiting-head > a")].filter((line) => line instanceof HTMLElement);
}

list.addEventListener("htmx:beforeSwap", () => {
  const focused = document.activeElement?.closest(".waiting > li")?.querySelector(".waiting-head > a");
  place = lines().findIndex((line) => line === focused);
});
list.addEventListener("htmx:afterSettle", () => {
  if (place < 0 || list.contains(document.activeElement)) return;
  const left = lines();
  const next = left[Math.min(place, left.length - 1)] ?? document.querySelector("#approvals-title");
  if (next instanceof HTMLElement) next.focus();
  place = -1;
});
