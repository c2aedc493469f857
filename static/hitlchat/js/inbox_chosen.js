// @ts-check
/** Which call is chosen, and its card. The address says it too, so that a reload and the way back find it. */

import { inTime } from "./heartbeat.js";

const main = /** @type {HTMLElement} */ (document.querySelector("[data-inbox]"));
const list = /** @type {HTMLElement} */ (document.querySelector("#waiting"));
export const cardTitle = /** @type {HTMLElement} */ (document.querySelector("#card-title"));
export const slot = /** @type {HTMLElement} */ (document.querySelector("#card-slot"));

/** Fast steps from line to line do not each ask for a card. */
const SETTLE_MS = 120;

let chosenId = list.querySelector("[aria-current]")?.closest("[data-line]")?.getAttribute("data-call") ?? new URLSearchParams(window.location.search).get("call") ?? "";
let timer = 0;
/** Whether a person chose it. What the page shows by itself is nobody's choice, and keys answer nothing of it. */
let byPerson = false;

/** @param {boolean} is */
function choose(is) {
  byPerson = is;
  main.toggleAttribute("data-own", is);
}

/** The line that keys act on. @returns {HTMLElement | undefined} */
export function chosenLine() {
  return byPerson ? lineOf(chosenId) : undefined;
}

/** The id of the approval; empty if none is chosen. */
export function chosen() {
  return chosenId;
}

/** Of the list as it stands, in its order. @returns {HTMLElement[]} */
export function lines() {
  return [...list.querySelectorAll("[data-line]")].filter((line) => line instanceof HTMLElement);
}

/** @param {string} id @returns {HTMLElement | undefined} */
export function lineOf(id) {
  return id ? lines().find((line) => line.dataset.call === id) : undefined;
}

/** The line behind the one with this id, else the one before; if that line has gone, what took its place. @param {string} id @param {number} stood */
export function nextOf(id, stood) {
  const all = lines();
  const at = all.findIndex((line) => line.dataset.call === id);
  return at < 0 ? all[Math.min(Math.max(stood, 0), all.length - 1)] : all[at + 1] ?? all[at - 1];
}

/** The card that is there, if it is that of the chosen call. @returns {HTMLElement | null} */
export function card() {
  const found = slot.querySelector("[data-ask]");
  return found instanceof HTMLElement && byPerson && slot.dataset.shows === chosenId && !timer ? found : null;
}

/** Of several fills at once the last one counts. */
let fills = 0;

/** Put a fragment of the server in the place of the card. Not by htmx, whose request would be dropped while another is under way. @param {string} url */
export async function fill(url) {
  const own = ++fills;
  try {
    const answer = await fetch(url, { headers: { "HX-Request": "true", "HX-Current-URL": window.location.href }, signal: inTime() });
    if (own !== fills) return false;
    // Signed out meanwhile: the whole page goes to where one signs in.
    if (answer.redirected || answer.headers.has("HX-Redirect")) window.location.reload();
    if (answer.status !== 200) return false;
    const html = await answer.text();
    if (own !== fills) return false;
    const hadFocus = slot.contains(document.activeElement);
    // @ts-ignore - htmx is a global of its own script
    window.htmx.swap(slot, html, { swapStyle: "innerHTML" });
    if (hadFocus && !slot.contains(document.activeElement)) cardTitle.focus({ preventScroll: true });
    return true;
  } catch {
    // The server is away: the card stays, and what is answered on it is judged by the server.
    return false;
  }
}

/** The card, or what became of the call. @param {string} id */
export async function showChosen(id) {
  const url = lineOf(id)?.dataset.card ?? `${window.location.pathname}${id}/outcome`;
  if ((await fill(url)) && id === chosenId) slot.dataset.shows = id;
}

// An answer to a look of the card that was here before.
slot.addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, target } = /** @type {CustomEvent} */ (event).detail;
  const isOfOther = Boolean(chosenId) && !requestConfig.path.includes(chosenId) && /\/(outcome|who|decide|take-back)\b/.test(requestConfig.path);
  if (target === slot && isOfOther) /** @type {CustomEvent} */ (event).detail.shouldSwap = false;
});

/** @param {string} id */
function address(id) {
  const url = new URL(window.location.href);
  if (id) url.searchParams.set("call", id);
  else url.searchParams.delete("call");
  return url;
}

/**
 * @param {HTMLElement} line
 * @param {{enter?: boolean, focus?: boolean, soon?: boolean, back?: boolean}} how `enter`: go on to the card; `focus`: to the line;
 *   `soon`: the card comes once the steps end; `back`: the address says so already.
 */
export function pick(line, how = {}) {
  const id = line.dataset.call ?? "";
  const isOther = id !== chosenId || slot.dataset.shows !== id;
  chosenId = id;
  choose(!how.back);
  line.closest("[data-burst]")?.setAttribute("open", "");
  for (const link of list.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  const link = line.querySelector("div > a");
  link?.setAttribute("aria-current", "true");
  if (link instanceof HTMLElement && how.focus) link.focus();
  if (!how.back) {
    // On a narrow screen the card takes the place of the list, and the way back leads to that.
    if (main.hasAttribute("data-picked")) history.replaceState(null, "", address(id));
    else history.pushState(null, "", address(id));
  }
  main.setAttribute("data-picked", "");
  clearTimeout(timer);
  timer = 0;
  const arrive = () => {
    timer = 0;
    if (isOther) showChosen(id).then(() => how.enter && enter());
    else if (how.enter) enter();
  };
  if (how.soon) timer = setTimeout(arrive, SETTLE_MS);
  else arrive();
}

function enter() {
  cardTitle.focus({ preventScroll: true });
  slot.scrollIntoView({ block: "nearest" });
}

/** Back to the list, where it has made way for the card; the card stays where both are seen. */
export function leave() {
  main.removeAttribute("data-picked");
  const link = lineOf(chosenId)?.querySelector("div > a");
  if (link instanceof HTMLElement) link.focus();
}

/** No single call is chosen. */
export function forget() {
  chosenId = "";
  choose(false);
  clearTimeout(timer);
  timer = 0;
  for (const link of list.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  delete slot.dataset.shows;
  history.replaceState(null, "", address(""));
}

document.querySelector("[data-back]")?.addEventListener("click", (event) => {
  event.preventDefault();
  history.replaceState(null, "", address(""));
  leave();
});
window.addEventListener("popstate", () => {
  const line = lineOf(new URLSearchParams(window.location.search).get("call") ?? "");
  if (line) pick(line, { back: true });
  else leave();
});
slot.dataset.shows = slot.childElementCount ? chosenId : "";
