// @ts-check
/** Keys of the Studio: Ctrl or Cmd with S saves, with Enter runs the test. */

/** @param {HTMLFormElement} form @param {string} key */
function act(form, key) {
  if (key === "s") form.requestSubmit();
  const run = document.querySelector("#test button[data-needs-saved]");
  if (key === "enter" && run instanceof HTMLButtonElement && !run.disabled) run.click();
}

/** @param {HTMLFormElement} form */
export function connectKeys(form) {
  document.addEventListener(
    "keydown",
    (event) => {
      const key = event.key.toLowerCase();
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || !["s", "enter"].includes(key)) return;
      // Where a person is asked something, or keeps a result, keys belong to that.
      const elsewhere = event.target instanceof Element && event.target.closest("[data-ask], #test-result");
      if (elsewhere || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      event.stopPropagation();
      if (!event.repeat) act(form, key);
    },
    true,
  );
}
