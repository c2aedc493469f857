// @ts-check
/** What a screen reader is told of the chat: once an answer is complete, and once that a call waits; nothing in between. */

import { _ } from "./texts.js";

/** Of a longer answer, that it is there. */
const LONGEST = 300;
const SETTLE_MS = 400;
const MOST_TRIES = 10;

/** The same words twice are two changes; what stands behind a window is not heard. @param {string} words */
export function announce(words) {
  const region = document.querySelector("dialog:modal [data-announce]") ?? document.querySelector("main > [data-announce]");
  if (!region) return;
  region.textContent = "";
  setTimeout(() => (region.textContent = words), 50);
}

/** What became of calls whose cards went without an answer given here, once the transcript says so. @param {{title: string, call: string}[]} gone */
export function announceGone(gone) {
  const tell = () => {
    const [{ title, call }] = gone;
    const fate = document.getElementById(call)?.querySelector(".fate")?.textContent?.trim() ?? "";
    if (gone.length > 1) announce(_("{count} calls no longer wait for an answer.", { count: gone.length }));
    else announce(_("No longer waiting: {title}. {fate}", { title, fate }).trim());
  };
  if (gone.length) setTimeout(tell, SETTLE_MS);
}

/** Was there a run at the last look? */
let wasActive = isActive();

function isActive() {
  return Boolean(document.querySelector("#run")?.getAttribute("data-active"));
}

/** @param {string} place */
function lastText(place) {
  return [...document.querySelectorAll(`#turns ${place}`)].at(-1)?.textContent?.trim() ?? "";
}

/** Once for each run, at its end. The page may hear of that before the whole of the answer is there. */
export function announceRun() {
  const before = wasActive;
  wasActive = isActive();
  if (before && !wasActive) setTimeout(announceEnd, SETTLE_MS, 0);
}

/** @param {number} tries */
function announceEnd(tries) {
  if (isActive()) return;
  const last = document.querySelector("#turns > :last-child");
  if (tries < MOST_TRIES && last?.matches(".user, :has(.caret)")) return void setTimeout(announceEnd, SETTLE_MS, tries + 1);
  const ended = document.querySelector("#run")?.getAttribute("data-run");
  if (ended === "stopped") announce(_("The run was stopped."));
  else if (ended === "failed") announce(_("The run failed. {why}", { why: lastText(".notice") }));
  else {
    const text = lastText(".assistant .prose");
    announce(text.length > LONGEST ? _("The answer is complete.") : _("The answer is complete: {text}", { text }));
  }
}
