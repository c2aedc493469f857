// @ts-check
/** How many calls wait for the person: on the link to them in the bar, and in the title of the tab. */

const EVERY_MS = 10_000;

const badge = /** @type {HTMLElement} */ (document.querySelector("[data-approvals-count]"));
const number = /** @type {HTMLElement} */ (badge.querySelector("[data-number]"));
let timer = 0;

/** @param {number} count */
function show(count) {
  badge.hidden = count === 0;
  if (number.textContent !== String(count)) number.textContent = String(count);
  // A conversation counts its own cards there.
  if (document.querySelector("[data-conversation]")) return;
  const plain = document.title.replace(/^\(\d+\) /, "");
  const title = count ? `(${count}) ${plain}` : plain;
  if (document.title !== title) document.title = title;
}

async function look() {
  try {
    const answer = await fetch(badge.dataset.approvalsCount ?? "", { headers: { Accept: "text/plain" } });
    if (answer.status === 200) show(Number(await answer.text()) || 0);
    // Nobody is signed in any more.
    if (answer.status === 204) clearInterval(timer);
  } catch {
    // The server is away: the next look may find it.
  }
}

timer = setInterval(look, EVERY_MS);
show(Number(number.textContent) || 0);

document.body.addEventListener("approvals-changed", look);
document.body.addEventListener("approvals-count", (event) => {
  show(Number(/** @type {CustomEvent} */ (event).detail?.value) || 0);
});
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (/** @type {CustomEvent} */ (event).detail?.requestConfig?.verb === "post") look();
});
