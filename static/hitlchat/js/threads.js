// @ts-check
/** The list of conversations: its search, the menu of a conversation, and the moment in which a deleted one comes back. */

const UNDO_MS = 10_000;

for (const form of document.querySelectorAll("[data-threads]")) {
  // The list follows what is typed; sent as a form it would leave the conversation.
  form.addEventListener("submit", (event) => event.preventDefault());
}

for (const menu of document.querySelectorAll("[data-menu]")) {
  if (!(menu instanceof HTMLDetailsElement)) continue;
  document.addEventListener("click", (event) => event.target instanceof Node && !menu.contains(event.target) && (menu.open = false));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
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
