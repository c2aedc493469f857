// @ts-check
/** What menus and single keys have in common, wherever they stand. */

/** A menu is left by a click elsewhere, by going on with Tab, and by Escape. @param {HTMLDetailsElement} menu */
export function leaveAsMenu(menu) {
  document.addEventListener("click", (event) => event.target instanceof Node && !menu.contains(event.target) && (menu.open = false));
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget instanceof Node && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
}

/** Does a key that is pressed there write? @param {EventTarget | null} target */
export function isWriting(target) {
  return target instanceof Element && Boolean(target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]"));
}
