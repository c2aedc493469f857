// @ts-check
/** What menus and single keys have in common, wherever they stand. */

/** Menus of the page that are open; those of a card are the card's. */
const OPEN = "details[open]:is(.menu, .side-menu, .nav-more):not(.ask details)";

/** A menu is left by a press elsewhere, and by going on with Tab. @param {Event} event */
function leaveOthers(event) {
  for (const menu of document.querySelectorAll(OPEN)) if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute("open");
}

// A finger on what does nothing by itself makes no click in every browser.
for (const kind of ["pointerdown", "click", "focusin"]) document.addEventListener(kind, leaveOthers);
/** The menu that has the focus, wherever it stands: its window stays. Behind a window there is nothing to leave. @param {Event} event */
function innermost(event) {
  const own = event.target instanceof Element ? event.target.closest("details.menu[open]") : null;
  return own ?? (document.querySelector("dialog:modal") ? null : document.querySelector(OPEN));
}

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && !event.defaultPrevented && innermost(event);
  if (!menu) return;
  event.preventDefault();
  menu.removeAttribute("open");
  menu.querySelector("summary")?.focus();
});

/** Does a key that is pressed there write? @param {EventTarget | null} target */
export function isWriting(target) {
  return target instanceof Element && Boolean(target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]"));
}
