// @ts-check
/** The pages one signs in on: what is typed as a password can be looked at, and one goes on at the field that was wrong. */

import { _ } from "./texts.js";

/** @param {HTMLElement} button */
function connect(button) {
  const input = document.getElementById(button.getAttribute("aria-controls") ?? "");
  if (!(input instanceof HTMLInputElement)) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const isShown = input.type === "text";
    input.type = isShown ? "password" : "text";
    button.textContent = isShown ? _("Show password") : _("Hide password");
  });
}

document.querySelectorAll("[data-show-password]").forEach((button) => connect(/** @type {HTMLElement} */ (button)));

const wrong = document.querySelector("[aria-invalid=true]");
if (wrong instanceof HTMLElement) wrong.focus();
