// @ts-check
/** Where one was in the editor, across the page that a save brings anew. */

/** @param {HTMLFormElement} form */
function keyOf(form) {
  return `studio-place:${new FormData(form).get("name") ?? ""}`;
}

/** @param {HTMLFormElement} form @param {any} editor */
export function keepPlace(form, editor) {
  const place = {
    ...editor.getCursorPosition(),
    focused: editor.isFocused(),
    code: editor.getSession().getScrollTop(),
    page: window.scrollY,
    facts: form.scrollTop,
  };
  sessionStorage.setItem(keyOf(form), JSON.stringify(place));
}

/** @param {HTMLFormElement} form @param {any} editor */
export function returnToPlace(form, editor) {
  const kept = sessionStorage.getItem(keyOf(form));
  if (!kept) return;
  sessionStorage.removeItem(keyOf(form));
  const place = JSON.parse(kept);
  editor.moveCursorTo(place.row, place.column);
  editor.clearSelection();
  if (place.focused) editor.focus();
  editor.getSession().setScrollTop(place.code);
  window.scrollTo({ top: place.page, behavior: "instant" });
  form.scrollTop = place.facts;
}
