// @ts-check
/** The Inspector: the newest message, and a question, come into view; what is drawn anew keeps the focus. */

const NEAR_PIXELS = 60;

const log = document.getElementById("inspector-log");
let follows = true;
log?.addEventListener("scroll", () => {
  follows = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_PIXELS;
});

// Where the focus was, if that goes away with what is drawn anew.
let left = "";
document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target } = /** @type {CustomEvent} */ (event).detail;
  if (target instanceof HTMLElement && target.contains(document.activeElement)) left = target.id;
});

let shown = "";
function show() {
  if (log && follows) log.scrollTop = log.scrollHeight;
  if (left && document.activeElement === document.body) document.getElementById(left)?.focus();
  left = "";
  const asked = document.querySelector("#inspector-questions article:last-of-type");
  // Its buttons get no focus by themselves: a key that was meant for something else must not answer.
  if (asked && asked.id !== shown) asked.scrollIntoView({ block: "nearest" });
  shown = asked?.id ?? "";
}

show();
document.body.addEventListener("htmx:afterSettle", show);
