// @ts-check
/** The form of a server: its rows, the risk of what is typed, and the wait while a connection is tested. */

import { _ } from "./texts.js";
import { connectRows } from "./value_rows.js";

const form = document.querySelector("[data-server-form]");
const QUIET_MS = 400;
let pending = 0;

/** Ask for the risk, once nothing was typed for a moment. */
function judgeSoon() {
  clearTimeout(pending);
  pending = setTimeout(() => form?.dispatchEvent(new Event("server-typed")), QUIET_MS);
}

if (form instanceof HTMLFormElement) {
  form.querySelectorAll("[data-values]").forEach((rows) => connectRows(rows, judgeSoon));
  form.addEventListener("input", judgeSoon);
  form.addEventListener("change", judgeSoon);
  // What one program was confirmed for must not stay in sight beside another.
  form.addEventListener("input", () => document.querySelector(".confirm")?.remove(), { once: true });
  document.querySelector(".confirm")?.scrollIntoView({ block: "center" });
}

/** @param {Event} event */
function placeOfTest(event) {
  const { elt, target } = /** @type {CustomEvent} */ (event).detail;
  const isTest = elt instanceof Element && elt.closest("[data-test], .trial") && target instanceof Element;
  return isTest ? /** @type {Element} */ (target) : null;
}

document.body.addEventListener("htmx:beforeRequest", (event) => {
  const place = placeOfTest(event);
  if (place) place.textContent = _("Connecting… This may take up to half a minute.");
});
// Once its tools are known the risk is another one.
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target instanceof Element && event.target.id === "standing") judgeSoon();
});
for (const kind of ["htmx:responseError", "htmx:sendError"]) {
  document.body.addEventListener(kind, (event) => {
    const place = placeOfTest(event);
    if (place) place.textContent = _("hitlchat itself did not answer as expected. Reload the page and try again.");
  });
}
