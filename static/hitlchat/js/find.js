// @ts-check
/** Ctrl+K finds conversations, tools and pages; “?” lists the keys. */

import { inTime } from "./heartbeat.js";
import { isWriting } from "./menu.js";
import { _, _n } from "./texts.js";

const WAIT_MS = 150;

/** Both dialogs, put into the page when one is first opened. @type {{ find: HTMLDialogElement, keys: HTMLDialogElement } | null} */
let made = null;
/** The newest question; answers to older ones are dropped. */
let asked = 0;
let timer = 0;
/** The words whose answer is in the list. @type {string | null} */
let listed = null;

function dialogs() {
  if (made) return made;
  const template = /** @type {HTMLTemplateElement} */ (document.querySelector("[data-dialogs]"));
  document.body.append(template.content.cloneNode(true));
  const find = /** @type {HTMLDialogElement} */ (document.querySelector("[data-find]"));
  const keys = /** @type {HTMLDialogElement} */ (document.querySelector("[data-all-keys]"));
  for (const each of [find, keys]) each.querySelector("[data-close]")?.addEventListener("click", () => each.close());
  connect(find);
  made = { find, keys };
  return made;
}

/** @param {HTMLDialogElement} find */
function connect(find) {
  input(find).addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => look(find), WAIT_MS);
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      step(find, event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      // In a field for searching it would only clear the words, and the dialog would stay open.
      event.preventDefault();
      find.close();
    } else if (event.key === "Enter" && event.target === input(find)) {
      event.preventDefault();
      void go(find);
    }
  });
}

/** @param {HTMLDialogElement} find */
function input(find) {
  return /** @type {HTMLInputElement} */ (find.querySelector("input"));
}

/** @param {HTMLDialogElement} find */
function links(find) {
  return [...find.querySelectorAll("a")];
}

/** Go to the first of what the words find, not of what stands there until that has come. @param {HTMLDialogElement} find */
async function go(find) {
  clearTimeout(timer);
  if (listed !== input(find).value) await look(find);
  if (find.open && listed === input(find).value) links(find)[0]?.click();
}

/** @param {HTMLDialogElement} find */
async function look(find) {
  const mine = ++asked;
  const words = input(find).value;
  const list = /** @type {HTMLElement} */ (find.querySelector("[data-found]"));
  const count = /** @type {HTMLElement} */ (find.querySelector("[data-found-count]"));
  try {
    const answer = await fetch(`${find.dataset.find}?${new URLSearchParams({ q: words })}`, { signal: inTime() });
    if (mine !== asked) return;
    // Signed out meanwhile: the page for signing in is no list.
    if (answer.redirected || !answer.ok) return window.location.reload();
    list.innerHTML = await answer.text();
    listed = words;
    const all = links(find).length;
    count.textContent = _n("{count} found", "{count} found", all);
  } catch {
    if (mine === asked) list.textContent = _("The server cannot be reached. Try again.");
  }
}

/** @param {HTMLDialogElement} find @param {number} by */
function step(find, by) {
  const all = /** @type {HTMLElement[]} */ ([input(find), ...links(find)]);
  const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  all[(at + by + all.length) % all.length]?.focus();
}

function open() {
  const { find } = dialogs();
  input(find).value = "";
  find.showModal();
  void look(find);
}

document.addEventListener("keydown", (event) => {
  // A page's own keys come first, and nothing opens above an open dialog: it may ask for a decision.
  if (event.defaultPrevented || document.querySelector("dialog:modal")) return;
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
  } else if (event.key === "?" && !event.ctrlKey && !event.metaKey && !isWriting(event.target) && !document.querySelector("[data-keys]")) {
    event.preventDefault();
    dialogs().keys.showModal();
  }
});
