// @ts-check
/** Tells the server, once each, which cards the person has really had before them; and with an answer, whether what is
 * folded was opened. Nothing depends on it: an answer counts with or without. */

import { inTime } from "./heartbeat.js";

const CARDS = "[data-shown]";
const FOLDS = "details[data-fold]";
/** Cards that come into sight together are told of together. */
const GATHER_MS = 50;
const AGAIN_MS = 5000;

/** @type {Set<Element>} */
const inSight = new Set();
/** What the server knows of. @type {Set<string>} */
const told = new Set();
/** What is watched, so that a card that comes back is not watched twice. @type {WeakSet<Element>} */
const watched = new WeakSet();
let timer = 0;

/** A card's head: as long as that is out of sight nobody knows what it asks. Of several calls: their list, which is folded at first. @param {Element} card */
function mark(card) {
  return card.querySelector(":scope > .ask-head, :scope > details > ol") ?? card;
}

/** @param {Element} card @returns {string[]} */
function items(card) {
  const own = card.getAttribute("data-item");
  if (own) return [own];
  const form = card.querySelector("form");
  return form ? new FormData(form).getAll("items").map(String) : [];
}

async function tell() {
  timer = 0;
  if (document.visibilityState !== "visible") return;
  const cards = [...inSight].filter((card) => card.isConnected);
  const fresh = [...new Set(cards.flatMap(items))].filter((item) => !told.has(item));
  if (!fresh.length) return;
  fresh.forEach((item) => told.add(item));
  const sent = new URLSearchParams(fresh.map((item) => ["items", item]));
  try {
    const headers = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
    const answer = await fetch(cards[0]?.getAttribute("data-shown") ?? "", { method: "POST", body: sent, headers, keepalive: true, signal: inTime() });
    if (!answer.ok) throw new Error(String(answer.status));
  } catch {
    // The server is away, say. The person sees the card all the same, so it is told later.
    fresh.forEach((item) => told.delete(item));
    soon(AGAIN_MS);
  }
}

function soon(ms = GATHER_MS) {
  if (!timer) timer = setTimeout(tell, ms);
}

const sight = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const card = entry.target.closest(CARDS);
      if (!card) continue;
      if (entry.isIntersecting) inSight.add(card);
      else inSight.delete(card);
    }
    soon();
  },
  { threshold: 0.01 },
);

function meet() {
  for (const card of document.querySelectorAll(CARDS)) {
    const seen = mark(card);
    if (watched.has(seen)) continue;
    watched.add(seen);
    sight.observe(seen);
  }
}

/** @param {Event} event */
function noteOpened(event) {
  const fold = event.target;
  const card = fold instanceof HTMLDetailsElement && fold.matches(FOLDS) && fold.open ? fold.closest(CARDS) : null;
  if (!card) return;
  const closed = [...card.querySelectorAll(FOLDS)].some((each) => each instanceof HTMLDetailsElement && !each.open && !each.hasAttribute("data-opened"));
  if (closed) return;
  for (const input of card.querySelectorAll("input[name=opened]")) if (input instanceof HTMLInputElement) input.value = "yes";
}

document.addEventListener("visibilitychange", () => soon());
document.addEventListener("toggle", noteOpened, true);
new MutationObserver(meet).observe(document.body, { childList: true, subtree: true });
meet();
