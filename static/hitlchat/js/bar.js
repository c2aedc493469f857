// @ts-check
/** The bar: how many calls wait for the person, on the link to them and in the title of the tab; and its menu. */

import "./menu.js";
import { listen, look } from "./news.js";
import "./find.js";
import "./notices.js";

// By then the page's scripts have run: what works by them alone takes presses from here on.
document.addEventListener("DOMContentLoaded", () => document.querySelector(".bar")?.removeAttribute("data-waking"));

const badge = /** @type {HTMLElement} */ (document.querySelector("[data-approvals-count]"));
const number = /** @type {HTMLElement} */ (badge.querySelector("[data-number]"));

/** @param {string} count As it is shown: “0”, “12”, “1,000+”. */
function show(count) {
  badge.hidden = count === "0";
  if (number.textContent !== count) number.textContent = count;
  // A conversation counts its own cards there.
  if (document.querySelector("[data-conversation]")) return;
  const plain = document.title.replace(/^\([\d,]+\+?\) /, "");
  const title = count === "0" ? plain : `(${count}) ${plain}`;
  if (document.title !== title) document.title = title;
}

show(number.textContent ?? "0");
document.body.addEventListener("inbox-news", (event) => show(/** @type {CustomEvent} */ (event).detail.waiting));
document.body.addEventListener("approvals-changed", look);
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (/** @type {CustomEvent} */ (event).detail?.requestConfig?.verb === "post") look();
});
listen(badge.dataset.approvalsCount ?? "");

const root = document.documentElement;
const theme = /** @type {HTMLFormElement} */ (document.querySelector("[data-switch-theme]"));
const themeButton = /** @type {HTMLButtonElement} */ (theme.querySelector("button"));
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches;
  themeButton.ariaPressed = `${isDark}`;
  themeButton.value = isDark ? "light" : "dark";
}

/** The page changes at once; the server keeps the choice for the next one. */
theme.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = new FormData(theme, themeButton);
  root.dataset.theme = themeButton.value;
  const radio = document.querySelector(`input[name="theme"][value="${themeButton.value}"]`);
  if (radio instanceof HTMLInputElement) radio.checked = true;
  const surface = getComputedStyle(document.querySelector(".bar") ?? root).backgroundColor;
  for (const meta of document.querySelectorAll('meta[name="theme-color"]')) meta.setAttribute("content", surface);
  showTheme();
  void fetch(theme.action, { method: "POST", body: chosen, redirect: "manual" });
});
systemIsDark.addEventListener("change", showTheme);
showTheme();
