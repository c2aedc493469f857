// @ts-check
/** The transcript: messages and blocks of code can be copied. */

import { connectCopy } from "./copy.js";

/** @param {HTMLElement} pre */
function offerCode(pre) {
  const box = document.createElement("div");
  box.className = "code-box";
  const button = document.createElement("button");
  button.className = "btn copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy code");
  pre.replaceWith(box);
  box.append(pre, button);
  connectCopy(button, pre, () => pre.textContent ?? "");
}

/** @param {HTMLElement} button */
function offerMessage(button) {
  const message = button.closest(".said");
  if (!message) return;
  connectCopy(button, message.querySelector(".prose") ?? message, async () => {
    const answer = await fetch(button.dataset.copyMessage ?? "", { headers: { Accept: "text/plain" } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  });
}

/** @param {Element} added */
function look(added) {
  // What is still being written is drawn again with every piece.
  for (const pre of added.querySelectorAll(".prose pre")) if (pre instanceof HTMLElement && !pre.closest(".code-box, [id$='-tail']")) offerCode(pre);
  for (const button of added.querySelectorAll("[data-copy-message][hidden]")) if (button instanceof HTMLElement) offerMessage(button);
}

const turns = document.querySelector("#turns");
if (turns) {
  look(turns);
  new MutationObserver((changes) => {
    const places = new Set(changes.filter((change) => change.addedNodes.length).map((change) => (change.target instanceof Element ? change.target : null)));
    for (const place of places) if (place && !place.closest("[id$='-tail'], .code-box")) look(place);
  }).observe(turns, { childList: true, subtree: true });
}
