// @ts-check
/** Reading a file of many tools takes a while: the button says so, and is not pressed twice. */

for (const form of document.querySelectorAll("form[data-reads]")) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button[type=submit]");
    if (!(button instanceof HTMLButtonElement)) return;
    button.dataset.words = button.textContent ?? "";
    button.textContent = form.getAttribute("data-reads");
    button.disabled = true;
  });
}
// A page that comes back from the browser's history is as it was left.
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("button[data-words]")) {
    if (!(button instanceof HTMLButtonElement)) continue;
    button.textContent = button.dataset.words ?? "";
    button.disabled = false;
    delete button.dataset.words;
  }
});
