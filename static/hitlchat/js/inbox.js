// @ts-check
/** The inbox: the list keeps itself up to date, one of its calls is chosen, and its card stays as it is while it is read. */

import "./cards.js";
import "./inbox_keys.js";
import "./inbox_notices.js";
import { afterSelected, clearSelection, keepSelection } from "./inbox_select.js";
import { cardTitle, chosen, forget, lineOf, lines, nextOf, pick, showChosen, slot } from "./inbox_chosen.js";

const list = /** @type {HTMLElement} */ (document.querySelector("#waiting"));
const title = /** @type {HTMLElement} */ (document.querySelector("#inbox-title"));
/** What has the focus in the list before it comes anew, and its place. */
let focusedId = "";
let place = -1;
/** Bursts that are open. @type {Set<string>} */
const open = new Set();
/** How the chosen call was asked, and where it stood, at the last look. */
let asked = "";
let stood = -1;

function note() {
  const line = lineOf(chosen());
  if (!line) return;
  asked = line.dataset.asked ?? "";
  stood = lines().indexOf(line);
}

/** @param {string} reason A card must not be taken from under a text that is being written. */
function showAnew(reason) {
  const isWriting = [...slot.querySelectorAll("textarea")].some((text) => text.value);
  if (reason === "times" && isWriting) return;
  showChosen(chosen());
}

/** What is chosen was answered, or asked once more. */
function follow() {
  const line = lineOf(chosen());
  if (line && line.dataset.asked !== asked) showAnew(line.dataset.asked?.split("*")[0] === asked.split("*")[0] ? "times" : "again");
  // While it was answered here, the answer brings what became of it.
  else if (!line && asked && slot.querySelector("[data-ask]") && !slot.querySelector(".htmx-request")) showAnew("gone");
  if (!line) asked = "";
  note();
}

list.addEventListener("htmx:beforeSwap", () => {
  const focused = document.activeElement;
  focusedId = focused && list.contains(focused) ? focused.id : "";
  const line = focused?.closest("[data-line]");
  place = line instanceof HTMLElement ? lines().indexOf(line) : -1;
});
list.addEventListener("htmx:afterSwap", () => {
  for (const burst of list.querySelectorAll("[data-burst]")) burst.toggleAttribute("open", open.has(burst.id));
  keepSelection();
  lineOf(chosen())?.querySelector("a")?.setAttribute("aria-current", "true");
  follow();
});
list.addEventListener("htmx:afterSettle", () => {
  if (!focusedId || list.contains(document.activeElement)) return;
  const rest = lines();
  const next = document.getElementById(focusedId) ?? rest[Math.min(Math.max(place, 0), rest.length - 1)]?.querySelector("a") ?? title;
  next.focus({ preventScroll: true });
});
list.addEventListener(
  "toggle",
  (event) => {
    if (!(event.target instanceof HTMLDetailsElement) || !event.target.matches("[data-burst]")) return;
    if (event.target.open) open.add(event.target.id);
    else open.delete(event.target.id);
  },
  true,
);
list.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("[data-line] > div > a") : null;
  const line = link?.closest("[data-line]");
  if (!(line instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  pick(line, { enter: event.detail === 0 });
  note();
});

/** After an answer given here nothing is chosen, so that no key answers the next call; what became of this one stands below. */
slot.addEventListener("htmx:afterSwap", (event) => {
  const request = /** @type {CustomEvent} */ (event).detail?.requestConfig;
  const answered = request?.verb === "post" && /\/(decide|together)$/.test(request.path);
  if (!answered || slot.querySelector("[data-ask]")) return;
  if (slot.querySelector("[role=alert]")) return cardTitle.focus({ preventScroll: true });
  const next = (chosen() ? nextOf(chosen(), stood) : afterSelected())?.querySelector("a");
  if (!chosen()) clearSelection();
  forget();
  asked = "";
  if (next instanceof HTMLElement && next.checkVisibility()) next.focus({ preventScroll: true });
  else cardTitle.focus({ preventScroll: true });
  list.dispatchEvent(new Event("look"));
});

document.body.addEventListener("inbox-news", () => list.dispatchEvent(new Event("look")));
// A connection that was lost without a word: the next look takes another one.
list.addEventListener("htmx:timeout", () => list.dispatchEvent(new Event("look")));
document.body.addEventListener("inbox-signed-out", () => window.location.reload());
document.body.addEventListener("inbox-open", (event) => {
  const id = /** @type {CustomEvent} */ (event).detail.id;
  const line = lineOf(id);
  if (!line) return;
  event.preventDefault();
  pick(line, { enter: true });
  note();
});

for (const burst of list.querySelectorAll("[data-burst]:has([aria-current])")) burst.toggleAttribute("open", true);
note();
