// @ts-check
/** The list of conversations: its search, the menu of a conversation, and the moment in which a deleted one comes back. */

const UNDO_MS = 10_000;

for (const form of document.querySelectorAll("[data-threads]")) {
  // The list follows what is typed; sent as a form it would leave the conversation.
  form.addEventListener("submit", (event) => event.preventDefault());
}

/** The page has the list twice, for wide and for narrow windows: one that nobody sees asks for nothing.
 * @param {Element} list */
const isSeen = (list) => !document.hidden && list.checkVisibility();

document.body.addEventListener("htmx:beforeRequest", (event) => {
  const { elt } = /** @type {CustomEvent} */ (event).detail;
  if (elt instanceof Element && elt.matches(".threads") && !isSeen(elt)) event.preventDefault();
});

/** @type {Map<Element, boolean>} */
const seen = new Map();

/** One that comes into view has been as it was for a while. */
function lookAtLists() {
  for (const form of document.querySelectorAll("[data-threads]")) {
    const was = seen.get(form) ?? true;
    seen.set(form, isSeen(form));
    if (isSeen(form) && !was) form.querySelector(".threads")?.dispatchEvent(new Event("stale"));
  }
}

lookAtLists();
const sizes = new ResizeObserver(lookAtLists);
for (const form of document.querySelectorAll("[data-threads]")) sizes.observe(form);
document.addEventListener("visibilitychange", lookAtLists);

// Which conversation waits for an answer is seen at once, whichever is open.
document.body.addEventListener("inbox-news", (event) => {
  const { came, gone } = /** @type {CustomEvent} */ (event).detail;
  if (came.length + gone.length) document.querySelectorAll(".threads").forEach((list) => list.dispatchEvent(new Event("stale")));
});

// A title is edited where it stands.
const rename = document.querySelector("form[data-rename]");
if (rename instanceof HTMLFormElement) {
  const field = /** @type {HTMLInputElement} */ (rename.elements.namedItem("title"));
  const menu = document.querySelector("[data-begin-rename]");
  const begin = () => {
    rename.hidden = false;
    field.focus();
    field.select();
  };
  document.querySelector(".chat-head")?.addEventListener("dblclick", (event) => {
    if (event.target instanceof Element && event.target.id === "title") begin();
  });
  menu?.addEventListener("click", begin);
  field.addEventListener("blur", () => {
    // Another window, or a way back.
    if (!document.hasFocus()) return;
    rename.hidden = true;
    rename.reset();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") menu?.closest("details")?.querySelector("summary")?.focus();
  });
}

const undo = document.querySelector("[data-undo]");
if (undo) {
  // A reload must not offer it again.
  history.replaceState(null, "", location.pathname);
  setTimeout(() => {
    if (undo.contains(document.activeElement)) document.getElementById("say")?.focus();
    undo.remove();
  }, UNDO_MS);
}
