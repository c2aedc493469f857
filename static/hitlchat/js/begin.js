// @ts-check
/** The page where a conversation begins. */

import "./cards.js";
import "./threads.js";
import { offerFiles } from "./attach.js";
import { sendOnEnter, takeTyping } from "./composer.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-composer]"));
const textarea = /** @type {HTMLTextAreaElement} */ (form.querySelector("textarea"));
const files = offerFiles(
  form,
  () => {
    textarea.required = files.ids().length === 0;
  },
  () => maySend() && form.requestSubmit(),
);
const route = /** @type {HTMLSelectElement | null} */ (form.querySelector("#route"));
let sent = false;

/** A preset that has its own model asks that; another one is chosen in the conversation. */
function chooseModel() {
  const preset = document.querySelector('[name="preset"]:checked');
  if (route) route.disabled = preset instanceof HTMLElement && "ownModel" in preset.dataset;
}

/** Once: a second Enter would begin a second conversation. */
function maySend() {
  return !files.holdsBack() && !sent && (textarea.value.trim() !== "" || files.ids().length > 0);
}

sendOnEnter(form, maySend);
takeTyping(textarea);
form.addEventListener("submit", (event) => {
  if (files.holdsBack() || sent) return event.preventDefault();
  sent = true;
  files.forget();
});
document.querySelector("[data-presets]")?.addEventListener("change", chooseModel);
window.addEventListener("pageshow", () => {
  sent = false;
  chooseModel();
});
