// @ts-check
/** The transcript: messages and blocks of code can be copied, and what was said can be said in another way. */

import { sendOnEnter } from "./composer.js";
import { connectCopy } from "./copy.js";

/** @param {HTMLElement} pre */
function offerCode(pre) {
  const box = document.createElement("div");
  box.className = "code-box";
  const button = document.createElement("button");
  button.className = "btn copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy code");
  pre.replaceWith(box);
  box.append(pre, button);
  connectCopy(button, pre, () => pre.textContent ?? "");
}

/** @param {HTMLElement} button */
function offerMessage(button) {
  const message = button.closest(".said");
  if (!message) return;
  connectCopy(button, message.querySelector(".prose") ?? message, async () => {
    const answer = await fetch(button.dataset.copyMessage ?? "", { headers: { Accept: "text/plain" } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  });
}

/** @param {HTMLDetailsElement} edit */
function offerEdit(edit) {
  const form = /** @type {HTMLFormElement} */ (edit.querySelector("form"));
  const textarea = /** @type {HTMLTextAreaElement} */ (edit.querySelector("textarea"));
  const leave = () => {
    edit.open = false;
    edit.querySelector("summary")?.focus();
  };
  edit.dataset.editMessage = "ready";
  sendOnEnter(form, () => Boolean(textarea.value.trim()));
  edit.addEventListener("toggle", () => {
    if (!edit.open) return;
    textarea.focus();
    textarea.setSelectionRange(textarea.value.length, textarea.value.length);
  });
  edit.addEventListener("keydown", (event) => event.key === "Escape" && edit.open && leave());
  edit.querySelector("[data-leave]")?.addEventListener("click", () => {
    textarea.value = textarea.defaultValue;
    leave();
  });
}

/** Where the focus goes once the wanted version is there: its switch has gone with the version before. */
let wanted = "";

/** @param {Event} event */
function leaveVersion(event) {
  const form = event.target instanceof HTMLFormElement && event.target.matches("[data-version]") ? event.target : null;
  if (event.target instanceof Element && event.target.closest("[data-edit-message]")) wanted = "edited";
  if (form) wanted = `${new FormData(form).get("run")} ${form.querySelector("button")?.getAttribute("aria-label")}`;
}

function meetVersion() {
  if (wanted === "edited" && document.activeElement === document.body) {
    wanted = "";
    if (!matchMedia("(pointer: coarse)").matches) document.getElementById("say")?.focus();
  }
  const [run, label] = [wanted.slice(0, 36), wanted.slice(37)];
  const found = run && document.getElementById(`versions-${run}`);
  if (!found) return;
  wanted = "";
  const usable = [...found.querySelectorAll("[data-version] button")].filter((button) => button instanceof HTMLButtonElement && !button.disabled);
  const next = usable.find((button) => button.getAttribute("aria-label") === label) ?? usable[0];
  if (next instanceof HTMLElement) next.focus();
}

/** @param {Element} added */
function look(added) {
  for (const edit of added.querySelectorAll("[data-edit-message='']")) if (edit instanceof HTMLDetailsElement) offerEdit(edit);
  // What is still being written is drawn again with every piece.
  for (const pre of added.querySelectorAll(".prose pre")) if (pre instanceof HTMLElement && !pre.closest(".code-box, [id$='-tail']")) offerCode(pre);
  for (const button of added.querySelectorAll("[data-copy-message][hidden]")) if (button instanceof HTMLElement) offerMessage(button);
}

const turns = document.querySelector("#turns");
if (turns) {
  look(turns);
  turns.addEventListener("submit", leaveVersion, true);
  new MutationObserver((changes) => {
    const places = new Set(changes.filter((change) => change.addedNodes.length).map((change) => (change.target instanceof Element ? change.target : null)));
    meetVersion();
    for (const place of places) if (place && !place.closest("[id$='-tail'], .code-box")) look(place);
  }).observe(turns, { childList: true, subtree: true });
}
