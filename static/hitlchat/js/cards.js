// @ts-check
/** Behaviour of approval cards wherever they stand: countdown, grace period, what must be looked at before approving. */

const GRACE_MS = 500;

/** When each card was first in sight, or the person last typed elsewhere. @type {WeakMap<Element, number>} */
const settledSince = new WeakMap();

/** @param {Element} card */
function isFresh(card) {
  return performance.now() - (settledSince.get(card) ?? performance.now()) < GRACE_MS;
}

/** Start, or start again, the pause in which neither keys nor clicks count (SR-39). */
export function restartGrace(root = document) {
  for (const card of root.querySelectorAll("[data-ask]")) settledSince.set(card, performance.now());
}

/** @param {Event} event */
function ignoreWhileFresh(event) {
  const card = event.target instanceof Element ? event.target.closest("[data-ask]") : null;
  if (!card || !isFresh(card)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Approve is possible once everything folded was opened and, at L5, the review was confirmed. @param {Element} card */
function updateApprove(card) {
  const level = Number(card.getAttribute("data-level"));
  const button = card.querySelector("[data-approve]");
  const why = card.querySelector(".why-not");
  if (level < 4 || !(button instanceof HTMLButtonElement) || !why || card.hasAttribute("data-over")) return;
  const closed = card.querySelectorAll("details[data-fold]:not([data-opened])").length;
  const box = card.querySelector("[data-reviewed]");
  const reviewed = !(box instanceof HTMLInputElement) || box.checked;
  button.disabled = closed > 0 || !reviewed;
  const words = reviewed ? "" : "Confirm first that you reviewed it.";
  // Written only when it differs, since the observer below looks again after each change.
  if (!closed && why.textContent !== words) why.textContent = words;
}

/** How far this browser's clock is behind the server's, in ms: deadlines are the server's. */
const skew = Date.parse(document.documentElement.dataset.now ?? "") - Date.now() || 0;

/** Times are stored in the server's zone and read in the person's. */
function localTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const moment = new Date(element.getAttribute("datetime") ?? "");
    element.setAttribute("data-local", "");
    element.setAttribute("title", moment.toLocaleString());
    element.textContent = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
}

/** At 0:00 nothing can be answered any more. @param {Element} card @param {boolean} isOver */
function setOver(card, isOver) {
  if (card.hasAttribute("data-over") === isOver) return;
  card.toggleAttribute("data-over", isOver);
  for (const button of card.querySelectorAll("button[type=submit]")) {
    if (button instanceof HTMLButtonElement) button.disabled = isOver;
  }
  updateApprove(card);
}

/** Where no connection brings it, ask what became of a call a second after its deadline, then now and then. @param {Element} card @param {number} ago */
function askWhatBecame(card, ago) {
  if (ago > 0 && ago % 2 === 1) card.closest("[data-card-slot]")?.querySelector("[data-what-became]")?.dispatchEvent(new Event("expired"));
}

function tick() {
  for (const element of document.querySelectorAll("[data-deadline]")) {
    const seconds = Math.round((Date.parse(element.getAttribute("data-deadline") ?? "") - Date.now() - skew) / 1000);
    const left = Math.max(0, seconds);
    const card = element.closest("[data-ask]");
    if (card) setOver(card, seconds <= 0);
    if (card) askWhatBecame(card, -seconds);
    const hours = Math.floor(left / 3600);
    const rest = `${Math.floor((left % 3600) / 60).toString().padStart(hours ? 2 : 1, "0")}:${(left % 60).toString().padStart(2, "0")}`;
    const text = hours ? `${hours}:${rest}` : rest;
    if (element.textContent !== text) element.textContent = text;
    element.parentElement?.classList.toggle("soon", left < 60);
  }
}

/** @param {Element} card */
function meet(card) {
  if (!settledSince.has(card)) settledSince.set(card, performance.now());
  updateApprove(card);
}

for (const kind of ["click", "keydown", "submit"]) document.addEventListener(kind, ignoreWhileFresh, true);
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (target instanceof HTMLTextAreaElement && !target.closest("[data-ask]")) restartGrace();
});
document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement)) return;
    if (details.matches("[data-fold]") && details.open) details.setAttribute("data-opened", "");
    const card = details.closest("[data-ask]");
    if (card) updateApprove(card);
  },
  true,
);
document.addEventListener("change", (event) => {
  const card = event.target instanceof Element ? event.target.closest("[data-ask]") : null;
  if (card) updateApprove(card);
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute("open");
  }
});

new MutationObserver(() => {
  document.querySelectorAll("[data-ask]").forEach(meet);
  localTimes();
  tick();
}).observe(document.body, { childList: true, subtree: true });
document.querySelectorAll("[data-ask]").forEach(meet);
localTimes();
tick();
setInterval(tick, 1000);
