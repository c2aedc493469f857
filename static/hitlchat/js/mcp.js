// @ts-check
/** Copies what stands beside a button; and keeps a page that shows a new token from making another when reloaded. */

const TOLD_MS = 2000;

/** @param {Element} element */
function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

/** @param {HTMLElement} button */
function connectCopy(button) {
  const source = document.getElementById(button.dataset.copy ?? "");
  if (!source) return;
  const words = [...button.childNodes];
  const told = document.createElement("span");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent ?? "");
      told.textContent = "Copied";
    } catch {
      // Pages without HTTPS may not write there, save those of this machine.
      select(source);
      told.textContent = "Selected: press Ctrl+C";
    }
    button.replaceChildren(told);
    announce(told.textContent);
    setTimeout(() => button.replaceChildren(...words), TOLD_MS);
  });
}

const status = document.createElement("p");
status.className = "sr";
status.setAttribute("role", "status");
document.querySelector("main")?.append(status);

/** @param {string} text */
function announce(text) {
  status.textContent = text;
  setTimeout(() => (status.textContent = ""), TOLD_MS);
}

document.querySelectorAll("[data-copy]").forEach((button) => connectCopy(/** @type {HTMLElement} */ (button)));

const made = document.querySelector("[data-made-at]");
if (made instanceof HTMLElement && made.dataset.madeAt) history.replaceState(null, "", made.dataset.madeAt);
