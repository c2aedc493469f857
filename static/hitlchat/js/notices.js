// @ts-check
/** Notifications of the browser, where the person asked for them on the inbox: one for each burst, and none while a page of ours is in front. */

import { _n } from "./texts.js";

const COLLECT_MS = 1500;
/** How long pages in front have to say so. */
const ASK_MS = 150;
const KEY = "hitlchat-notify";
/** The same for all tabs: of several that notify, one is seen. */
const TAG = "hitlchat-inbox";

/** @typedef {import("./news.js").Came} Came */

/** What came since the last notification. @type {Map<string, Came>} */
const collected = new Map();
/** What the notification that is open is about. @type {Set<string>} */
const shown = new Set();
/** @type {Notification | null} */
let notification = null;
let timer = 0;
let someoneIsInFront = false;

const tabs = "BroadcastChannel" in window ? new BroadcastChannel("hitlchat-tabs") : null;

export function canNotify() {
  return "Notification" in window;
}

export function wantsNotices() {
  return canNotify() && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
}

/** @param {boolean} on */
export function setNotices(on) {
  localStorage.setItem(KEY, on ? "on" : "off");
  if (!on) notification?.close();
}

function isInFront() {
  return document.visibilityState === "visible" && document.hasFocus();
}

/** @param {Came[]} calls */
function words(calls) {
  const tools = [...new Set(calls.map((call) => call.tool))];
  const rest = tools.length - 1;
  return rest ? _n("{tool} and {count} other tool", "{tool} and {count} other tools", rest, { tool: tools[0] }) : tools[0];
}

/** Neither what is to be done nor with what: it is read on locked screens. */
function notify() {
  const calls = [...collected.values()];
  collected.clear();
  timer = 0;
  if (!calls.length || someoneIsInFront || isInFront() || !wantsNotices()) return;
  const title = _n("A call waits for your answer", "{count} calls wait for your answer", calls.length);
  shown.clear();
  calls.forEach((call) => shown.add(call.id));
  notification = new Notification(title, { body: words(calls), tag: TAG });
  notification.addEventListener("click", () => {
    window.focus();
    notification?.close();
    const opening = new CustomEvent("inbox-open", { cancelable: true, detail: { id: calls[0].id } });
    // The inbox itself brings up the card; from elsewhere the way leads there.
    if (document.body.dispatchEvent(opening)) window.location.assign(`${inbox()}?call=${calls[0].id}`);
  });
}

function inbox() {
  return document.querySelector("[data-inbox-page]")?.getAttribute("data-inbox-page") ?? "/";
}

/** Once it is quiet, or has been long enough: ask the other pages whether one is in front. */
function ask() {
  someoneIsInFront = false;
  tabs?.postMessage("in front?");
  setTimeout(notify, ASK_MS);
}

tabs?.addEventListener("message", (event) => {
  if (event.data === "in front?" && isInFront()) tabs.postMessage("I am");
  if (event.data === "I am") someoneIsInFront = true;
});

document.body.addEventListener("inbox-news", (event) => {
  const { came, gone } = /** @type {{came: Came[], gone: string[]}} */ (/** @type {CustomEvent} */ (event).detail);
  for (const id of gone) {
    collected.delete(id);
    // Once nothing waits of what it was about.
    if (shown.delete(id) && !shown.size) notification?.close();
  }
  for (const call of came) collected.set(call.id, call);
  if (came.length && !timer && wantsNotices()) timer = setTimeout(ask, COLLECT_MS);
  if (!timer) collected.clear();
});
