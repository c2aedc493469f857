// @ts-check
/** What is unfolded in a part of the page stays so when that part comes anew, and its times are those of the reader. */


/** @type {Set<string>} */
const unfolded = new Set();

document.addEventListener(
  "toggle",
  (event) => {
    const fold = event.target;
    if (!(fold instanceof HTMLDetailsElement) || !fold.id || !fold.isConnected) return;
    if (fold.open) unfolded.add(fold.id);
    else unfolded.delete(fold.id);
  },
  true,
);
document.body.addEventListener("htmx:afterSwap", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
});
