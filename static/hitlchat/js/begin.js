// @ts-check
/** The page where a conversation begins. */

import "./cards.js";
import "./threads.js";
import { sendOnEnter } from "./composer.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-composer]"));
const textarea = /** @type {HTMLTextAreaElement} */ (form.querySelector("textarea"));
let sent = false;

// Once: a second Enter would begin a second conversation.
sendOnEnter(form, () => !sent && textarea.value.trim() !== "");
form.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
window.addEventListener("pageshow", () => (sent = false));
