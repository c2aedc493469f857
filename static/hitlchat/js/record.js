// Verifies the record and shows how far that is; the page itself shows what was found.
// @ts-check

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("[data-verify]"));
const bar = form?.querySelector("progress");
const words = form?.querySelector("[data-progress]");

/** @param {string} line */

import { _ } from "./texts.js";
function show(line) {
  const said = JSON.parse(line);
  if (!bar || !words) return said;
  if (said.of !== undefined) {
    bar.max = Math.max(1, said.of);
    bar.value = said.done;
    words.textContent = _("{done} of {all} batches and calls", { done: said.done.toLocaleString("en"), all: said.of.toLocaleString("en") });
  }
  if (said.error !== undefined) words.textContent = said.error;
  return said;
}

/** @param {HTMLFormElement} from */
async function verify(from) {
  const answer = await fetch(from.action, { method: "POST", body: new FormData(from), headers: { Accept: "application/x-ndjson" } });
  if (!answer.ok || !answer.body) throw new Error(`${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, last] = ["", /** @type {any} */ ({})];
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) last = show(line);
  }
  return last;
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  if (!bar || !words || !button || button.disabled) return;
  button.disabled = true;
  bar.hidden = false;
  words.textContent = _("Verifying…");
  try {
    const last = await verify(form);
    if (last.whole !== undefined) window.location.assign(form.dataset.verify ?? "");
    else if (last.error === undefined) words.textContent = _("The verification was interrupted. Try again.");
  } catch {
    words.textContent = _("The server did not answer. Try again.");
  }
  button.disabled = false;
});
