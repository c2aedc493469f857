// @ts-check
/** The conversation page: the cards that ask, the composer, the connection. */

import { announce, announceGone, announceRun } from "./announce.js";
import { approveByKey, declineAtOnce } from "./card_keys.js";
import { restartGrace } from "./cards.js";
import { comesAsTyping } from "./guard.js";
import { isWriting } from "./menu.js";
import "./threads.js";
import "./transcript.js";
import { offerFiles } from "./attach.js";
import { BeatingSocket, GIVEN_UP } from "./heartbeat.js";
import { keepDraft, sendOnEnter, takeTyping } from "./composer.js";
import { _, _n } from "./texts.js";

/** A connection that takes longer than this to come up is worth a word. */
const PATIENCE_MS = 1500;

const page = /** @type {HTMLElement} */ (document.querySelector("[data-conversation]"));
const dialog = /** @type {HTMLDialogElement} */ (document.querySelector("[data-ask-modal]"));
const asks = /** @type {HTMLElement} */ (document.querySelector("#asks"));
const log = /** @type {HTMLElement} */ (document.querySelector("[data-log]"));
const composer = /** @type {HTMLFormElement} */ (document.querySelector("[data-composer]"));
const textarea = /** @type {HTMLTextAreaElement} */ (composer.querySelector("textarea"));
const send = /** @type {HTMLButtonElement} */ (composer.querySelector("[data-send]"));
const draft = keepDraft(textarea);
const files = offerFiles(composer, updateComposer, sendDue);
const flash = /** @type {HTMLElement} */ (document.querySelector("#flash"));
const toCards = /** @type {HTMLElement} */ (composer.querySelector("[data-answer]"));
const newBelow = /** @type {HTMLElement} */ (log.querySelector("[data-new-below]"));

/** Where cards stand in the transcript, below the text that led to them; elsewhere they come up in a window. */
const ROOM = matchMedia("(width >= 44rem) and (height >= 31.25rem)");
const PLACE = "hitlchat-cards";

/** From here to the end it counts as the end, in px. */
const NEAR_END = 80;
/** So much of the cards at an edge is no sight of them, in px. */
const EDGE = 40;

/** Did the cards stand in the transcript when they were last shown? */
let stoodInline = false;
/** Cards put off by “Decide later” or Escape; they don't open the modal by themselves again. @type {Set<string>} */
const putOff = new Set();
/** Cards at the last look. @type {Set<string>} */
let seen = new Set();
/** What each of them asks, and the id of its call's line. @type {Map<string, {title: string, call: string}>} */
const asked = new Map();
/** Those that were answered here. @type {Set<string>} */
const answeredHere = new Set();
let connected = false;
let hasGivenUp = false;
/** The message on its way, as it stands in the composer until it has arrived. */
let sent = "";
/** The files that go with it. @type {string[]} */
let sentFiles = [];
/** Is the server's word on it still to come? Until then the same is not sent again. */
let isUnderway = false;
/** Was Enter pressed while there was no connection? What was written is sent once there is one, unless it changes. */
let isDue = false;

function waiting() {
  return [...asks.querySelectorAll("[data-ask]")];
}

/** Is this person the one who answers it, and has not? @param {Element} card */
function isMine(card) {
  return !card.hasAttribute("data-others");
}

/** @param {number} open @param {number} all */
function heading(open, all) {
  if (open) return open === 1 ? _("A call needs your answer") : _("{open} calls need your answer", { open });
  return _n("A call waits for others", "{count} calls wait for others", all);
}

function isInline() {
  return ROOM.matches && localStorage.getItem(PLACE) !== "window";
}

/** Put the cards where they belong. In the transcript they take no focus: whoever writes goes on writing. */
function present() {
  const inline = isInline();
  if (dialog.open && dialog.matches(":modal") !== inline) return;
  dialog.querySelector("[data-told]")?.replaceChildren();
  restartGrace(asks);
  if (dialog.open) dialog.close();
  stoodInline = inline;
  if (inline) {
    dialog.removeAttribute("closedby");
    dialog.setAttribute("open", "");
    if (follows) goToCards();
  } else {
    dialog.setAttribute("closedby", "closerequest");
    dialog.showModal();
    // Whatever the browser snaps to: what stands above the first card comes first.
    asks.scrollTop = 0;
  }
  point();
}

/** Do the cards stand where the page put them? Only until the person does something. */
let isPlaced = false;

/** As far down as it goes without the first of them leaving at the top. */
function goToCards() {
  log.scrollTop += dialog.getBoundingClientRect().top - log.getBoundingClientRect().top - NEAR_END / 4;
  lastTop = log.scrollTop;
  isPlaced = true;
}

function offerPlace() {
  const button = /** @type {HTMLElement} */ (dialog.querySelector("[data-place]"));
  button.hidden = !ROOM.matches;
  const words = isInline() ? _("Show in a window") : _("Show in the transcript");
  if (button.textContent !== words) button.textContent = words;
}

function movePlace() {
  offerPlace();
  const cards = waiting();
  // In the transcript nothing is put off: there it is in nobody's way. What was put off comes up in no window.
  if (!isInline() && cards.every((card) => putOff.has(card.id))) dialog.close();
  else if (cards.length) present();
}

/** A card that comes or goes moves the others: a click meant for what stood there must not count. @param {Set<string>} ids */
function steady(ids) {
  if (ids.size !== seen.size || [...ids].some((id) => !seen.has(id))) restartGrace(asks);
  seen = ids;
}

/** Whoever does not see a card go is told so, unless they answered it. @param {Element[]} cards */
function tellGone(cards) {
  const gone = [...asked].filter(([id]) => !cards.some((card) => card.id === id));
  for (const [id] of gone) asked.delete(id);
  announceGone(gone.filter(([id]) => !answeredHere.delete(id)).map(([, what]) => what));
  for (const card of cards) asked.set(card.id, { title: card.querySelector("h3")?.textContent?.trim() ?? "", call: card.getAttribute("data-call-line") ?? "" });
}

/** @param {Event} event */
function noteOwn(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const items = new FormData(form).getAll("items");
  for (const card of waiting()) if (card.contains(form) || items.includes(card.getAttribute("data-item") ?? "")) answeredHere.add(card.id);
}

/** Where each card stands among the others. @param {Element[]} cards */
function number(cards) {
  cards.forEach((card, index) => {
    const nth = card.querySelector("[data-nth]");
    const words = cards.length > 1 ? _("{number} of {all}", { number: index + 1, all: cards.length }) : "";
    if (nth && nth.textContent !== words) nth.textContent = words;
  });
}

/** The title of the conversation, which may change while the page is open. @param {number} open */
function nameWindow(open) {
  const words = `${document.querySelector("#title")?.textContent?.trim()} · hitlchat`;
  document.title = open ? `(${open}) ${words}` : words;
}

function updateModal() {
  const cards = waiting();
  number(cards);
  const come = cards.some((card) => isMine(card) && !seen.has(card.id));
  tellGone(cards);
  steady(new Set(cards.map((card) => card.id)));
  const title = dialog.querySelector("h2");
  const open = cards.filter(isMine).length;
  const words = heading(open, cards.length);
  if (title && title.textContent !== words) title.textContent = words;
  // A window says it by itself, where its heading gets the focus.
  if (come && isInline()) announce(words);
  nameWindow(open);
  if (!cards.length) dialog.close();
  else if (isInline() || cards.some((card) => !putOff.has(card.id))) present();
  if (dialog.open) goOn(cards);
}

/** The button that was pressed has gone with its card: on to the next one. @param {Element[]} cards */
function goOn(cards) {
  if (dialog.matches(":modal")) {
    if (!dialog.contains(document.activeElement)) dialog.querySelector("h2")?.focus();
    return;
  }
  // All may be drawn anew before what was answered goes.
  if (!answered || document.getElementById(answered)) return;
  const next = cards.find((card) => isMine(card) && behind.has(card.id)) ?? cards.find(isMine);
  if (next && document.activeElement === document.body) {
    focusCard(next);
    unchosen = next;
  } else if (document.activeElement === document.body) writeOn();
  answered = "";
}

/** A card that got the focus by the answer to another one: whoever presses on by then means no card, until they choose it. @type {Element | null} */
let unchosen = null;

/** Tab or a click chooses it. @param {Event} event */
function choose(event) {
  if (!(event instanceof KeyboardEvent) || event.key === "Tab") unchosen = null;
}

/** @param {Element} card */
function focusCard(card) {
  if (!(card instanceof HTMLElement)) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}

/** The id of the card, or of the calls answered together, that had the focus when an answer was sent, until it goes. */
let answered = "";
/** The cards below it. @type {Set<string>} */
let behind = new Set();

function noteAnswered() {
  const own = document.activeElement?.closest("[data-ask], [data-batch]");
  answered = own?.id ?? "";
  const below = waiting().filter((card) => own && own.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING);
  behind = new Set(below.map((card) => card.id));
}

/** A card is answered by its buttons, or by a chord while it has the focus. @param {KeyboardEvent} event */
function pressKey(event) {
  const card = event.target instanceof Element ? event.target.closest("[data-ask]") : null;
  if (!(card instanceof HTMLElement)) return;
  const act = { Enter: approveByKey, Backspace: declineAtOnce }[event.key];
  if (!act || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.defaultPrevented || isWriting(event.target)) return;
  event.preventDefault();
  if (!event.repeat && card !== unchosen && !comesAsTyping(card)) act(card);
}

/** To what waits, wherever it is shown. */
function goToWaiting() {
  putOff.clear();
  present();
  const cards = waiting();
  const card = cards.find(isMine) ?? cards[0];
  if (card && isInline()) focusCard(card);
}

function updateComposer() {
  const busy = Boolean(document.querySelector("#run")?.getAttribute("data-active"));
  send.disabled = !connected || files.isBusy() || !(textarea.value.trim() || files.ids().length);
  const note = composer.querySelector("[data-composer-note]");
  if (!note) return;
  const usual = note.getAttribute("data-usual") ?? note.textContent ?? "";
  note.setAttribute("data-usual", usual);
  const queued = busy ? _("Messages you send now are queued until this run finishes.") : usual;
  const words = isDue ? _("Your message will be sent as soon as this page is connected.") : queued;
  if (note.textContent !== words) note.textContent = words;
}

/** One thing alone points to what waits, and only while none of it is in view; by keyboard it is there all the time. */
function point() {
  const cards = waiting();
  const open = cards.filter(isMine).length;
  const words = open ? _n("1 call waiting", "{count} calls waiting", open) : _n("A call waits for others", "{count} calls wait for others", cards.length);
  const label = isInline() ? `${words} ↓` : words;
  toCards.hidden = !cards.length;
  toCards.classList.toggle("in-view", dialog.open && (dialog.matches(":modal") || isInLog(dialog.getBoundingClientRect())));
  if (toCards.textContent !== label) toCards.textContent = label;
}

/** Is more of it in the part of the transcript that is seen than its edge? @param {DOMRect} box */
function isInLog(box) {
  const seen = log.getBoundingClientRect();
  return box.top < seen.bottom - EDGE && box.bottom > seen.top + EDGE;
}

/** @param {boolean} isConnected */
function setConnected(isConnected) {
  connected = isConnected;
  for (const bar of document.querySelectorAll("[data-offline]")) bar.toggleAttribute("hidden", isConnected);
  if (isConnected) document.querySelectorAll("[data-kept]").forEach((note) => note.remove());
  updateComposer();
}

/** What the list of conversations tells of this one, as it was at the last look. */
let told = "";

/** The list beside the page asks for itself again once this conversation has got another title, or waits for someone, or no longer does. */
function refreshThreads() {
  const run = document.querySelector("#run");
  const now = [document.querySelector("#title"), run].map((part) => part?.textContent?.trim()).join(" ") + run?.getAttribute("data-waiting");
  if (told && told !== now) document.querySelectorAll(".threads").forEach((list) => list.dispatchEvent(new Event("stale")));
  told = now;
  nameWindow(waiting().filter(isMine).length);
  const field = page.querySelector("[data-rename] input[name=title]");
  const title = document.querySelector("#title")?.textContent?.trim() ?? "";
  if (!(field instanceof HTMLInputElement) || field.value !== field.defaultValue || !title) return;
  field.value = field.defaultValue = title;
}

/** On its card: an answer that waits for the connection. @param {Event} event */
function keep(event) {
  const form = event.target instanceof HTMLFormElement ? event.target : null;
  const foot = form?.closest(".ask-foot");
  foot?.querySelector("[data-unsure]")?.remove();
  if (connected || !form || !foot || foot.querySelector("[data-kept]")) return;
  const verdict = new FormData(form).get("verdict") === "approve" ? _("approve") : _("decline");
  const kept = _("Your answer ({verdict}) will be sent when the connection is back.", { verdict });
  foot.append(note(hasGivenUp ? _("Nothing was sent. Reload the page, then answer again.") : kept, "data-kept"));
}

/** What was sent when the connection was lost: whether it arrived only the page that comes next can tell. @param {Event} event */
function sayUnsure(event) {
  for (const message of /** @type {CustomEvent<string[]>} */ (event).detail) {
    const { type, approval } = JSON.parse(message);
    const foot = approval && asks.querySelector(`[data-item^="${CSS.escape(approval)}:"] > .ask-foot`);
    const said = _("Your answer may not have arrived. If the card is still here when the connection is back, answer again.");
    const others = _("Your last message may not have arrived. When the connection is back, check, and send it again if needed.");
    if (type === "decide" && foot) {
      foot.querySelector("[data-unsure]")?.remove();
      foot.append(note(said, "data-unsure"));
    } else {
      flash.replaceChildren(note(others, "data-unsure"));
    }
  }
}

/** @param {string} words @param {string} mark */
function note(words, mark) {
  const made = document.createElement("p");
  made.className = "small kept";
  made.setAttribute("role", "status");
  made.setAttribute(mark, "");
  made.textContent = words;
  return made;
}

/** It would fail again and again: no other connection is made. */
function giveUp() {
  hasGivenUp = true;
  isDue = false;
  updateComposer();
  const words = _("The connection keeps failing, so this page has stopped trying. Reload the page. If that does not help, tell whoever runs this server.");
  for (const bar of document.querySelectorAll("[data-offline] > span:last-child")) bar.textContent = words;
}

/** Under a finger the keyboard would come up. */
function writeOn() {
  const next = matchMedia("(pointer: coarse)").matches ? log : textarea;
  next.focus({ preventScroll: true });
}

/** Forms whose button goes with what it starts or ends. */
const GOING = "#run form, #ended form, #queued form, #turns form:not([data-version])";
let going = false;

/** The button that was pressed has gone, and the focus with it. */
function leaveGone() {
  if (going && document.activeElement === document.body) writeOn();
}

/** Follow the text as it grows, unless the person has scrolled up to read; what opens in between is no reason to stop. */
let follows = true;
let lastTop = 0;
/** What stood at the end when following stopped. */
let endThen = "";

/** The call that a link led to, until the person goes elsewhere. */
let wantedCall = page.dataset.wantedCall ?? "";

/** Open it and go there; from further up, messages are fetched until it comes. False: it is not there. */
function goToCall() {
  const call = wantedCall && document.getElementById(wantedCall);
  const more = document.querySelector("#earlier button");
  if (!call) return Boolean(wantedCall && more instanceof HTMLElement && (more.click(), true));
  if (follows) endThen = theEnd();
  follows = false;
  if (call instanceof HTMLDetailsElement && !call.open) call.open = true;
  call.scrollIntoView({ block: "center" });
  return true;
}

/** The person does something: the page leads nowhere by itself any more. */
function letGo() {
  wantedCall = "";
  read = null;
  isPlaced = false;
}

for (const kind of ["wheel", "pointerdown", "keydown"]) document.addEventListener(kind, letGo, { passive: true });

function isAtEnd() {
  return log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END;
}

/** What is last in the transcript, told apart by what would interest someone who reads further up. */
function theEnd() {
  const last = log.querySelector("#turns > :last-child");
  const parts = [...(last?.querySelectorAll(".prose, [data-status]") ?? [])].map((part) => part.textContent?.length);
  return [last?.id, ...parts].join(" ");
}

/** The message that is read while others come in above, or all are drawn anew, and where it was. @type {{id: string, top: number} | null} */
let read = null;
/** The place of the first message that was loaded, and 0 for the first of all: at each connect only the last ones come. */
let loaded = earliest();
let loadsMore = false;

function earliest() {
  return Number(document.querySelector("#earlier")?.getAttribute("data-before") ?? 0);
}

function noteRead() {
  const edge = log.getBoundingClientRect().top;
  const found = follows ? undefined : [...log.querySelectorAll("#turns > .said")].find((each) => each.getBoundingClientRect().bottom > edge);
  if (found) read ??= { id: found.id, top: found.getBoundingClientRect().top };
}

log.addEventListener("htmx:oobBeforeSwap", noteRead);
log.addEventListener("htmx:beforeSwap", (event) => {
  if (!(event.target instanceof Element) || event.target.id !== "earlier") return;
  noteRead();
  loadsMore = true;
});

/** What was being read stays where it is, and the button for more is at hand. */
function keepPlace() {
  const found = read && document.getElementById(read.id);
  if (read && found) {
    log.scrollTop += found.getBoundingClientRect().top - read.top;
    lastTop = log.scrollTop;
    read = null;
  }
  const more = document.querySelector("#earlier button");
  if (loadsMore) {
    loadsMore = false;
    loaded = Math.min(loaded, earliest());
    if (document.activeElement === document.body) (more instanceof HTMLElement ? more : log).focus({ preventScroll: true });
  }
  loadAgain();
}

function loadAgain() {
  const more = document.querySelector("#earlier button");
  if (earliest() > loaded && more instanceof HTMLElement) more.click();
}

// Only by then a button that was fetched works.
log.addEventListener("htmx:afterSettle", (event) => event.target instanceof Element && event.target.id === "earlier" && loadAgain());

function goToEnd() {
  follows = true;
  log.scrollTop = log.scrollHeight;
  lastTop = log.scrollTop;
  tellNew();
}

/** Was another version asked for, which is not there yet? With it nothing comes that is new. */
let switching = false;

/** New is what has come since the end was last in view, as long as that is further down. */
function tellNew() {
  const end = log.querySelector("#turns")?.getBoundingClientRect().bottom ?? 0;
  if (follows || switching || end < log.getBoundingClientRect().bottom + NEAR_END) endThen = theEnd();
  newBelow.hidden = theEnd() === endThen;
}

log.addEventListener("scroll", () => {
  const isUp = log.scrollTop < lastTop;
  // To its very end the browser scrolls as well, when the transcript gets more room.
  if (log.scrollTop !== lastTop && log.scrollHeight - log.scrollTop - log.clientHeight > 1) isPlaced = false;
  lastTop = log.scrollTop;
  // The browser scrolls as well, while what is read is not there yet.
  if (read) return;
  if (isAtEnd()) follows = true;
  else if (isUp && follows) {
    endThen = theEnd();
    follows = false;
  }
  tellNew();
});
// A picture takes its room once it is there.
log.addEventListener("load", () => follows && !dialog.matches("[open]:not(:modal)") && goToEnd(), true);
new ResizeObserver(() => {
  tellNew();
  point();
}).observe(log);
new IntersectionObserver(point, { root: log, rootMargin: `-${EDGE}px 0px` }).observe(dialog);
new MutationObserver((changes) => {
  leaveGone();
  keepPlace();
  // What changes within a card is no news of the transcript, and must not move what is being read.
  if (changes.every((change) => dialog.contains(change.target))) return;
  if (goToCall()) return;
  // The text that led to a card may come in after it: it must not push the card out of view.
  if (follows && dialog.matches("[open]:not(:modal)")) {
    const isLonger = changes.some((change) => [...change.addedNodes].some((node) => node instanceof Element));
    if (isLonger && isPlaced) goToCards();
  } else if (follows) goToEnd();
  else tellNew();
  switching = false;
}).observe(log, { childList: true, subtree: true, characterData: true });
newBelow.querySelector("button")?.addEventListener("click", () => {
  goToEnd();
  log.focus({ preventScroll: true });
});

new MutationObserver(() => {
  updateModal();
  updateComposer();
  document.body.dispatchEvent(new Event("approvals-changed"));
}).observe(asks, { childList: true });
new MutationObserver(() => {
  leaveGone();
  updateComposer();
  refreshThreads();
  announceRun();
}).observe(/** @type {Node} */ (page.querySelector(".chat-head")), { childList: true, subtree: true });
/** A message that was taken back stands before whatever has been written since. */
function refill() {
  const signal = document.querySelector("[data-refill-composer]");
  if (!signal) return;
  textarea.value = [signal.textContent, textarea.value].filter(Boolean).join("\n\n");
  files.show(JSON.parse(signal.getAttribute("data-files") || "[]"));
  signal.remove();
  draft.keep();
  updateComposer();
  textarea.focus();
}

new MutationObserver(() => {
  refill();
  const signal = document.querySelector("[data-clear-composer]");
  if (!signal) return;
  signal.remove();
  isUnderway = false;
  // What was typed since it was sent stays.
  if (textarea.value.startsWith(sent)) textarea.value = textarea.value.slice(sent.length);
  files.leave(sentFiles);
  draft.keep();
  updateComposer();
}).observe(/** @type {Node} */ (document.querySelector("#composer-signal")), { childList: true });

/** What is told while the modal is open stands behind it, where nobody reads it. */
const toldHere = /** @type {HTMLElement} */ (dialog.querySelector("[data-told]"));
new MutationObserver(() => {
  isUnderway = false;
  if (dialog.matches(":modal")) toldHere.replaceChildren(...[...flash.childNodes].map((node) => node.cloneNode(true)));
}).observe(flash, { childList: true });

asks.addEventListener(
  "toggle",
  (event) => {
    const opened = event.target;
    if (opened instanceof HTMLDetailsElement && opened.open && opened.matches("[data-batch] > details")) opened.scrollIntoView({ block: "start" });
  },
  true,
);
toCards.addEventListener("click", goToWaiting);
document.addEventListener("keydown", pressKey);
for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, choose);
asks.addEventListener("htmx:wsBeforeSend", noteAnswered);
asks.addEventListener("submit", noteOwn);
ROOM.addEventListener("change", movePlace);
dialog.querySelector("[data-place]")?.addEventListener("click", () => {
  localStorage.setItem(PLACE, isInline() ? "window" : "transcript");
  putOff.clear();
  movePlace();
});
/** At once: the event that tells of the end comes a moment later, when the window may be another one. */
function putAllOff() {
  for (const card of waiting()) putOff.add(card.id);
}

dialog.querySelector("[data-later]")?.addEventListener("click", () => {
  putAllOff();
  dialog.close();
});
// Escape means neither yes nor no, as “Decide later” does.
dialog.addEventListener("cancel", putAllOff);
dialog.addEventListener("close", () => {
  // A card that came in between has opened it again, with all of them.
  if (dialog.open) return;
  answered = "";
  putAllOff();
  tellNew();
  point();
  // In the transcript it may go while somebody is elsewhere.
  if (stoodInline && document.activeElement !== document.body) return;
  // It opened by itself, so there is nothing to go back to.
  writeOn();
});
page.addEventListener("submit", (event) => (going = event.target instanceof Element && event.target.matches(GOING)), true);
log.addEventListener("submit", (event) => (switching = event.target instanceof Element && event.target.matches("[data-version]")), true);
document.addEventListener("focusin", () => (going = false));

/** Enter. Without a connection it is kept in mind: htmx would keep the text as it was, whatever is written meanwhile. */
function maySend() {
  isDue = !files.holdsBack() && !connected && !hasGivenUp && Boolean(textarea.value.trim() || files.ids().length);
  updateComposer();
  if (isDue) announce(_("Your message will be sent as soon as this page is connected."));
  return !send.disabled;
}

function sendDue() {
  if (maySend()) composer.requestSubmit();
}

textarea.addEventListener("input", () => {
  isDue = false;
  updateComposer();
});
sendOnEnter(composer, maySend);
takeTyping(textarea);
composer.addEventListener(
  "submit",
  (event) => {
    isDue = false;
    // Before the socket is open the browser would send the form by itself, with the text in the address.
    if (!send.disabled && !(isUnderway && textarea.value === sent)) {
      isUnderway = true;
      sent = textarea.value;
      sentFiles = files.ids();
      return goToEnd();
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

document.body.addEventListener("htmx:wsConfigSend", keep);
document.body.addEventListener("htmx:wsOpen", () => {
  setConnected(true);
  if (isDue) sendDue();
});
document.body.addEventListener("htmx:wsClose", (event) => {
  isUnderway = false;
  setConnected(false);
  const code = /** @type {CustomEvent} */ (event).detail?.event?.code;
  if (code === 4401) window.location.reload();
  if (code === 4403) window.location.assign("/deactivated");
  if (code === 4404) window.location.assign("/");
  if (code === GIVEN_UP) giveUp();
});
document.addEventListener("DOMContentLoaded", () => {
  // @ts-ignore
  window.htmx.createWebSocket = (/** @type {string} */ url) => {
    const socket = new BeatingSocket(url);
    socket.addEventListener("unsure", sayUnsure);
    return socket;
  };
  // @ts-ignore - htmx is a global of its own script
  window.htmx.config.wsReconnectDelay = (/** @type {number} */ tries) => Math.min(250 * 2 ** tries, 4000) * (0.75 + Math.random() / 2);
});

setTimeout(() => connected || setConnected(false), PATIENCE_MS);
if (!goToCall()) goToEnd();
offerPlace();
updateModal();
updateComposer();
refreshThreads();
