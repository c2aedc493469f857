// @ts-check
/** The Tool Studio's page: the editor's label, unsaved changes, the words under the HITL mode. */

import "./cards.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-tool-form]"));
const ORDER = ["DISABLED", "CONDITIONAL", "REQUIRED"];
let dirty = false;

function markDirty() {
  dirty = true;
  document.querySelector("[data-dirty]")?.removeAttribute("hidden");
  for (const button of document.querySelectorAll("[data-needs-saved]")) {
    if (button instanceof HTMLButtonElement) button.disabled = true;
  }
  const hint = document.querySelector("[data-saved-hint]");
  if (hint) hint.textContent = "Save first: the test runs the saved code.";
}

function showMode() {
  const mode = String(new FormData(form).get("hitl_mode"));
  for (const words of document.querySelectorAll("[data-mode-words]")) {
    words.toggleAttribute("hidden", words.getAttribute("data-mode-words") !== mode);
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
  const editor = ace.edit(box);
  editor.setOptions({ enableKeyboardAccessibility: true, fontSize: "12.5px", scrollPastEnd: 0.2, showFoldWidgets: false });
  editor.textInput.getElement().setAttribute("aria-label", "Code of the tool");
  editor.getSession().on("change", markDirty);
  const line = /^Line (\d+)/.exec(document.querySelector(".main .problem")?.textContent ?? "");
  if (line) {
    editor.getSession().setAnnotations([{ row: Number(line[1]) - 1, column: 0, type: "error", text: document.querySelector(".main .problem")?.textContent }]);
    editor.gotoLine(Number(line[1]), 0, false);
  }
}

form.addEventListener("input", markDirty);
form.addEventListener("change", showMode);
form.addEventListener("submit", () => (dirty = false));
window.addEventListener("beforeunload", (event) => dirty && event.preventDefault());
window.addEventListener("load", () => setTimeout(connectEditor));
showMode();
