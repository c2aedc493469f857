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
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog:modal") && document.querySelector(OPEN);
  if (!menu) return;
  event.preventDefault();
  menu.removeAttribute("open");
  menu.querySelector("summary")?.focus();
});

/** Does a key that is pressed there write? @param {EventTarget | null} target */
export function isWriting(target) {
  return target instanceof Element && Boolean(target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]"));
}
