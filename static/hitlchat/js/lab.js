// @ts-check
/** Choosing a tool fetches its mode and condition: what is typed or sent before they are there wins. */

/** @param {Event} event */
function stay(event) {
  const choice = document.querySelector("#lab select[name=tool]");
  if (choice && event.target !== choice && event.target instanceof Element && event.target.closest("#lab form.simulate")) {
    choice.dispatchEvent(new CustomEvent("htmx:abort", { bubbles: true, detail: { elt: choice } }));
  }
}

document.addEventListener("input", stay);
document.addEventListener("submit", stay, true);
