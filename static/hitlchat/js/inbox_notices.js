// @ts-check
/** The button with which notifications are asked for, and turned off. */

import { canNotify, setNotices, wantsNotices } from "./notices.js";
import { _ } from "./texts.js";

const button = /** @type {HTMLButtonElement} */ (document.querySelector("[data-notify]"));
const note = /** @type {HTMLElement} */ (document.querySelector("[data-notify-note]"));
const BLOCKED = _("This browser blocks notifications for this page. Allow them in the browser’s settings.");

function show() {
  button.hidden = !canNotify();
  button.setAttribute("aria-pressed", String(wantsNotices()));
  button.textContent = wantsNotices() ? _("Notifications on") : _("Notify me");
  button.title = wantsNotices() ? _("Turn notifications off") : _("Notify me when no hitlchat page is in front");
}

button.addEventListener("click", async () => {
  const on = !wantsNotices();
  const may = !on || (await Notification.requestPermission()) === "granted";
  setNotices(on && may);
  note.textContent = !may ? BLOCKED : on ? _("You are notified of new calls when no hitlchat page is in front.") : "";
  show();
});
show();
