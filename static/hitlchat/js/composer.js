// @ts-check
/** The box one writes in, the same on every page: Enter sends, and what is not sent yet outlives a reload. */

/**
 * Enter sends, Shift and Enter starts a line.
 * @param {HTMLFormElement} form
 * @param {() => boolean} maySend
 */
export function sendOnEnter(form, maySend) {
  form.querySelector("textarea")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (maySend()) form.requestSubmit();
  });
}

/**
 * What stood in the box when the page was left stands there again; each address has its own draft, in this tab alone.
 * @param {HTMLTextAreaElement} textarea
 */
export function keepDraft(textarea) {
  const key = `draft:${window.location.pathname}`;
  textarea.value ||= sessionStorage.getItem(key) ?? "";
  const keep = () => (textarea.value ? sessionStorage.setItem(key, textarea.value) : sessionStorage.removeItem(key));
  textarea.addEventListener("input", keep);
  return { keep };
}
