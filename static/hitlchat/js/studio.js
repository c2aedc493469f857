// @ts-check
/** The Tool Studio's page: the editor's label, unsaved changes, the words under the HITL mode. */

import "./cards.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-tool-form]"));
const ORDER = ["DISABLED", "CONDITIONAL", "REQUIRED"];
let dirty = false;

const QUIET_MS = 500;
/** @type {any} */
let editor = null;
let pending = 0;

/** Ask what follows from the editor's contents, once nothing was typed for a moment. */
function inspectSoon() {
  clearTimeout(pending);
  // @ts-ignore - htmx is a global of its own script
  pending = setTimeout(() => window.htmx.trigger("#inspection", "inspect"), QUIET_MS);
}

/** Put what the check found into the editor's margin. */
function markLines() {
  if (!editor) return;
  const lines = [...document.querySelectorAll("#inspection [data-line]")];
  editor.getSession().setAnnotations(
    lines.map((line) => ({ row: Number(line.getAttribute("data-line")) - 1, column: 0, type: "error", text: line.textContent })),
  );
}

function markDirty() {
  inspectSoon();
  dirty = true;
  document.querySelector("[data-saved]")?.remove();
  document.querySelector("[data-dirty]")?.removeAttribute("hidden");
  for (const button of document.querySelectorAll("[data-needs-saved]")) {
    if (button instanceof HTMLButtonElement) button.disabled = true;
  }
  const hint = document.querySelector("[data-saved-hint]");
  if (hint) hint.textContent = "Save first: the test runs the saved code.";
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
  document.querySelector("[data-lower]")?.toggleAttribute("hidden", !lowers);
}

function connectEditor() {
  const box = document.querySelector("[data-code] .django-ace-widget > div");
  // @ts-ignore - ace is a global of its own script
  const ace = window.ace;
  if (!box || !ace) return;
  editor = ace.edit(box);
  editor.setOptions({ enableKeyboardAccessibility: true, fontSize: "12.5px", scrollPastEnd: 0.2, showFoldWidgets: false });
  editor.textInput.getElement().setAttribute("aria-label", "Code of the tool");
  editor.getSession().on("change", markDirty);
  markLines();
}

document.body.addEventListener("htmx:afterSettle", markLines);
document.addEventListener("click", (event) => {
  const line = event.target instanceof Element ? event.target.closest("[data-goto]")?.getAttribute("data-goto") : null;
  if (line && editor) {
    editor.gotoLine(Number(line), 0, false);
    editor.focus();
  }
});
form.addEventListener("input", markDirty);
form.addEventListener("change", showMode);
form.addEventListener("submit", () => (dirty = false));
window.addEventListener("beforeunload", (event) => dirty && event.preventDefault());
window.addEventListener("load", () => setTimeout(connectEditor));
// A reload saves nothing.
if (document.querySelector("[data-saved]")) window.history.replaceState(null, "", window.location.pathname);
showMode();
