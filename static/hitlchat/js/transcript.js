// @ts-check
/** The transcript: messages and blocks of code can be copied, and what was said can be said in another way. */

import { sendOnEnter } from "./composer.js";
import { connectCopy } from "./copy.js";
import { inTime } from "./heartbeat.js";
import { _ } from "./texts.js";

/** @param {string} words @param {string} label */
function codeButton(words, label) {
  const button = document.createElement("button");
  button.className = "btn";
  button.type = "button";
  button.textContent = words;
  button.setAttribute("aria-label", label);
  return button;
}

/** @param {HTMLElement} pre */
function offerCode(pre) {
  const box = document.createElement("div");
  const acts = document.createElement("div");
  const wrap = codeButton(_("Wrap"), _("Wrap long lines"));
  const copy = codeButton(_("Copy"), _("Copy code"));
  box.className = "code-box";
  acts.className = "acts";
  wrap.setAttribute("aria-pressed", "false");
  wrap.addEventListener("click", () => wrap.setAttribute("aria-pressed", `${pre.classList.toggle("wrapped")}`));
  pre.replaceWith(box);
  acts.append(wrap, copy);
  box.append(pre, acts);
  connectCopy(copy, pre, () => pre.textContent ?? "");
}

/** @param {HTMLElement} button */
function offerMessage(button) {
  const message = button.closest(".said");
  if (!message) return;
  connectCopy(button, message.querySelector(".prose") ?? message, async () => {
    const answer = await fetch(button.dataset.copyMessage ?? "", { headers: { Accept: "text/plain" }, signal: inTime() });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  });
}

/** A file that does not go with the message as it is said now. @param {Element} button @param {boolean} isOut */
function leaveOut(button, isOut) {
  const chip = /** @type {HTMLElement} */ (button.closest(".chip"));
  if (isOut) button.closest("form")?.querySelector("textarea")?.focus();
  chip.hidden = isOut;
  /** @type {HTMLInputElement} */ (chip.querySelector("input")).disabled = isOut;
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
  form.addEventListener("submit", () => (edit.dataset.editMessage = "sent"));
  textarea.addEventListener("input", () => (edit.dataset.editMessage = "ready"));
  sendOnEnter(form, () => Boolean(textarea.value.trim() || form.querySelector("[name=attachments]:enabled")));
  edit.addEventListener("toggle", () => {
    if (!edit.open) return;
    textarea.focus();
    textarea.setSelectionRange(textarea.value.length, textarea.value.length);
    // With its buttons.
    edit.scrollIntoView({ block: "nearest" });
  });
  edit.addEventListener("keydown", (event) => event.key === "Escape" && edit.open && leave());
  for (const button of edit.querySelectorAll("[data-leave-out]")) button.addEventListener("click", () => leaveOut(button, true));
  edit.querySelector("[data-leave]")?.addEventListener("click", () => {
    textarea.value = textarea.defaultValue;
    edit.querySelectorAll("[data-leave-out]").forEach((button) => leaveOut(button, false));
    leave();
  });
}

/** Where the focus goes once the wanted version is there: its switch has gone with the version before. */
let wanted = "";

/** @param {Event} event */
function leaveVersion(event) {
  const form = event.target instanceof HTMLFormElement && event.target.matches("[data-version]") ? event.target : null;
  if (form) wanted = `${new FormData(form).get("run")} ${form.querySelector("button")?.getAttribute("aria-label")}`;
}

function meetVersion() {
  const [run, label] = [wanted.slice(0, 36), wanted.slice(37)];
  const found = run && document.getElementById(`versions-${run}`);
  if (!found) return;
  wanted = "";
  const usable = [...found.querySelectorAll("[data-version] button")].filter((button) => button instanceof HTMLButtonElement && !button.disabled);
  const next = usable.find((button) => button.getAttribute("aria-label") === label) ?? usable[0];
  if (next instanceof HTMLElement) next.focus();
}

/** Does a message of the transcript say this by now? @param {string} text */
function isSaid(text) {
  return [...document.querySelectorAll("#turns [data-edit-message] textarea")].some((each) => each instanceof HTMLTextAreaElement && each.defaultValue.trim() === text.trim());
}

/** What was being written in place of a message, or was sent and not taken, goes into the box if another tab has shown another version meanwhile. @param {Node} gone */
function rescue(gone) {
  if (!(gone instanceof Element)) return;
  for (const edit of gone.querySelectorAll("[data-edit-message=ready], [data-edit-message=sent]")) {
    const textarea = edit.querySelector("textarea");
    if (!textarea || textarea.value === textarea.defaultValue || document.getElementById(edit.id)) continue;
    if (edit.getAttribute("data-edit-message") === "sent" && isSaid(textarea.value)) continue;
    const words = document.createElement("span");
    words.dataset.refillComposer = "";
    words.textContent = textarea.value;
    document.querySelector("#composer-signal")?.append(words);
    const told = document.createElement("p");
    told.textContent = _("The message you were editing was changed elsewhere. Your text is in the box below.");
    document.querySelector("#flash")?.replaceChildren(told);
  }
}

/** What was unfolded, and is to be again once it is drawn anew: all of it is at each connect. @type {Set<string>} */
const unfolded = new Set();

/** @param {Node} gone */
function noteUnfolded(gone) {
  if (!(gone instanceof Element)) return;
  for (const each of [gone, ...gone.querySelectorAll("details")]) if (each.matches("details.call[open], details.thoughts[open]")) unfolded.add(each.id);
}

function unfold() {
  for (const id of unfolded) {
    const found = document.getElementById(id);
    if (!found) continue;
    unfolded.delete(id);
    found.toggleAttribute("open", true);
  }
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
    changes.forEach((change) => change.removedNodes.forEach(rescue));
    changes.forEach((change) => change.removedNodes.forEach(noteUnfolded));
    unfold();
    for (const place of places) if (place && !place.closest("[id$='-tail'], .code-box")) look(place);
  }).observe(turns, { childList: true, subtree: true });
}
