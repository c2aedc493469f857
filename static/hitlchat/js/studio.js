// @ts-check
/** The Tool Studio's page: the editor and what the check marks in it, unsaved changes, the words under the HITL mode. */

import "./cards.js";
import { connectKeys } from "./studio_keys.js";
import { keepPlace, returnToPlace } from "./studio_place.js";
import { _, _n } from "./texts.js";
import { connectRows } from "./value_rows.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-tool-form]"));
const ORDER = ["DISABLED", "CONDITIONAL", "REQUIRED"];
const QUIET_MS = 500;

// Its note goes with the next change.
const wasSaved = document.querySelector("[data-saved]") !== null;
let dirty = form.hasAttribute("data-unsaved");
/** @type {any} */
let editor = null;
/** @type {number[]} */
let marked = [];
let pending = 0;
/** Which of the folds in the check's answer are open; every answer brings them anew. @type {Set<string>} */
const unfolded = new Set();

/** Ask what follows from the editor's contents, once nothing was typed for a moment. */
function inspectSoon() {
  clearTimeout(pending);
  // @ts-ignore - htmx is a global of its own script
  pending = setTimeout(() => window.htmx.trigger("#inspection", "inspect"), QUIET_MS);
}

/** How much the check found, in words. */
function countWords() {
  const wrong = document.querySelectorAll("#inspection [data-finding]").length;
  const doubtful = document.querySelectorAll("#inspection [data-doubt]").length;
  const words = wrong === 0 ? _("No problems") : _n("{count} finding", "{count} findings", wrong);
  return doubtful === 0 ? words : `${words}, ${_n("{count} warning", "{count} warnings", doubtful)}`;
}

/** Say how much the check found, with the way there. */
function showCount() {
  const said = document.querySelector("[data-finding-count]");
  const words = countWords();
  // Written only when it differs: a screen reader says it each time.
  if (!said || said.textContent === words) return;
  const link = document.createElement("a");
  link.href = "#inspection";
  link.textContent = words;
  said.replaceChildren(words === _("No problems") ? words : link);
}

/** Put what the check found into the editor's margin and behind its lines, and say how much it is. */
function showFindings() {
  showCount();
  if (!editor) return;
  const session = editor.getSession();
  const found = [...document.querySelectorAll("#inspection [data-line]")].map((line) => ({
    row: Number(line.getAttribute("data-line")) - 1,
    text: line.querySelector("[data-said]")?.textContent ?? "",
    type: line.hasAttribute("data-doubt") ? "warning" : "error",
  }));
  session.setAnnotations(found.map(({ row, text, type }) => ({ row, column: 0, type, text })));
  marked.forEach((id) => session.removeMarker(id));
  // @ts-ignore - ace is a global of its own script
  const { Range } = window.ace.require("ace/range");
  const wrong = found.filter(({ type }) => type === "error");
  marked = wrong.map(({ row }) => session.addMarker(new Range(row, 0, row, 1), "found-line", "fullLine"));
}

function markDirty() {
  inspectSoon();
  dirty = true;
  document.querySelector("[data-saved]")?.remove();
  document.querySelector("[data-dirty]")?.removeAttribute("hidden");
  lockWhatNeedsSaved();
}

/** What is tested and published is what was saved, so neither is possible before. */
function lockWhatNeedsSaved() {
  for (const button of document.querySelectorAll("[data-needs-saved]")) {
    if (button instanceof HTMLButtonElement) button.disabled = true;
  }
  const hint = document.querySelector("[data-saved-hint]");
  if (hint) hint.textContent = _("Save first: the test runs the saved code.");
}

function showMode() {
  const mode = String(new FormData(form).get("hitl_mode") ?? "");
  for (const words of document.querySelectorAll("[data-mode-words]")) {
    words.toggleAttribute("hidden", words.getAttribute("data-mode-words") !== mode);
  }
  for (const part of document.querySelectorAll("[data-only-mode]")) {
    part.toggleAttribute("hidden", part.getAttribute("data-only-mode") !== mode && !part.querySelector(".problem"));
  }
  const before = form.getAttribute("data-mode");
  const lowers = before !== null && ORDER.indexOf(mode) < ORDER.indexOf(before);
  const rule = String(new FormData(form).get("condition") ?? "").replaceAll("\r\n", "\n");
  const otherRule = before === "CONDITIONAL" && mode === before && rule.trim() !== form.getAttribute("data-condition");
  const trusts = form.hasAttribute("data-signed-in-only") && !new FormData(form).has("signed_in_only");
  document.querySelector("[data-lower]")?.toggleAttribute("hidden", !lowers && !otherRule && !trusts);
  document.querySelector("[data-lower-mode]")?.toggleAttribute("hidden", !lowers);
  document.querySelector("[data-lower-rule]")?.toggleAttribute("hidden", !otherRule);
  document.querySelector("[data-lower-word]")?.toggleAttribute("hidden", !trusts);
}

function connectEditor() {
  const box = document.querySelector("[data-code] .django-ace-widget > div");
  // @ts-ignore - ace is a global of its own script
  const ace = window.ace;
  if (!box || !ace) return;
  editor = ace.edit(box);
  editor.setOptions({ enableKeyboardAccessibility: true, fontSize: "12.5px", scrollPastEnd: 0.2, showFoldWidgets: false });
  editor.textInput.getElement().setAttribute("aria-label", _("Code of the tool"));
  editor.getSession().on("change", markDirty);
  replaceStarter();
  showFindings();
  if (wasSaved) returnToPlace(form, editor);
}

/** A whole function that is pasted into an untouched starter takes its place: beside it, there would be two. */
function replaceStarter() {
  const starter = editor.getValue();
  if (form.hasAttribute("data-mode") || form.hasAttribute("data-unsaved")) return;
  editor.on("paste", (/** @type {{ text: string }} */ { text }) => {
    if (editor.getValue() === starter && /^def run\b/m.test(text)) editor.selectAll();
  });
}

/** Where a test's argument was wrong, that is where one goes on typing. */
function goToField() {
  const name = document.querySelector("#test-result [data-field]")?.getAttribute("data-field");
  for (const field of document.querySelectorAll("#test [aria-invalid]")) field.removeAttribute("aria-invalid");
  const field = name ? document.getElementById(name) : null;
  field?.setAttribute("aria-invalid", "true");
  field?.focus();
}

document.body.addEventListener("htmx:afterSettle", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (target?.id === "test-result") {
    goToField();
    target.scrollIntoView({ block: "nearest" });
  }
  for (const fold of document.querySelectorAll("#inspection details[data-keep]")) {
    fold.toggleAttribute("open", unfolded.has(fold.getAttribute("data-keep") ?? ""));
  }
  showFindings();
  if (dirty) lockWhatNeedsSaved();
});
document.addEventListener(
  "toggle",
  (event) => {
    const fold = event.target;
    if (!(fold instanceof HTMLDetailsElement) || !fold.dataset.keep || !fold.isConnected) return;
    if (fold.open) unfolded.add(fold.dataset.keep);
    else unfolded.delete(fold.dataset.keep);
  },
  true,
);
document.addEventListener("click", (event) => {
  const line = event.target instanceof Element ? event.target.closest("[data-goto]")?.getAttribute("data-goto") : null;
  if (line && editor) {
    editor.gotoLine(Number(line), 0, false);
    editor.container.scrollIntoView({ block: "nearest" });
    editor.focus();
  }
});
form.addEventListener("input", markDirty);
form.addEventListener("change", showMode);
form.addEventListener("input", showMode);
form.addEventListener("submit", () => {
  dirty = false;
  if (editor) keepPlace(form, editor);
});
window.addEventListener("beforeunload", (event) => dirty && event.preventDefault());
window.addEventListener("load", () => setTimeout(connectEditor));
// A reload saves nothing.
if (wasSaved) window.history.replaceState(null, "", window.location.pathname);
form.querySelectorAll("[data-values]").forEach((rows) => connectRows(rows, markDirty));
connectKeys(form);
if (dirty) lockWhatNeedsSaved();
showMode();
