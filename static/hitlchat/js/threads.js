// @ts-check
/** The list of conversations: its search, the menu of a conversation, and the moment in which a deleted one comes back. */

import { leaveAsMenu } from "./menu.js";

const UNDO_MS = 10_000;

for (const form of document.querySelectorAll("[data-threads]")) {
  // The list follows what is typed; sent as a form it would leave the conversation.
  form.addEventListener("submit", (event) => event.preventDefault());
}

for (const menu of document.querySelectorAll("[data-menu]")) {
  if (!(menu instanceof HTMLDetailsElement)) continue;
  leaveAsMenu(menu);
  // Where titles are, a double click renames.
  document.querySelector(".chat-head")?.addEventListener("dblclick", (event) => {
    if (!(event.target instanceof Element) || event.target.id !== "title") return;
    menu.open = true;
    const field = menu.querySelector("input[name=title]");
    if (field instanceof HTMLInputElement) field.select();
  });
}

const undo = document.querySelector("[data-undo]");
if (undo) {
  // A reload must not offer it again.
  history.replaceState(null, "", location.pathname);
  setTimeout(() => undo.remove(), UNDO_MS);
}
