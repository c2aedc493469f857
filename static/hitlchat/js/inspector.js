// @ts-check
/** The Inspector: the chosen tool is marked and gets the focus; the newest message, and a question, come into view. */

const NEAR_PIXELS = 60;

function mark() {
  for (const link of document.querySelectorAll("[data-tool]")) {
    if (!(link instanceof HTMLAnchorElement)) continue;
    if (link.pathname === location.pathname) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

const log = document.getElementById("inspector-log");
let follows = true;
log?.addEventListener("scroll", () => {
  follows = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_PIXELS;
});

function follow() {
  if (log && follows) log.scrollTop = log.scrollHeight;
}

// Where the focus was, if that goes away with what is drawn anew.
let left = "";
document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target } = /** @type {CustomEvent} */ (event).detail;
  if (target instanceof HTMLElement && target.contains(document.activeElement)) left = target.id;
});

function goOn() {
  if (left && document.activeElement === document.body) document.getElementById(left)?.focus();
  left = "";
}

// Behind the list, which may be long, rather than in the middle of it.
document.body.addEventListener("htmx:afterRequest", (event) => {
  const { elt, successful } = /** @type {CustomEvent} */ (event).detail;
  if (successful && elt instanceof Element && elt.matches("[data-tool]")) document.getElementById("tool-head")?.focus();
});

let shown = "";
function show() {
  const asked = document.querySelector("#inspector-questions article:last-of-type");
  // Its buttons get no focus by themselves: a key that was meant for something else must not answer.
  if (asked && asked.id !== shown) asked.scrollIntoView({ block: "nearest" });
  shown = asked?.id ?? "";
}

mark();
follow();
show();
document.body.addEventListener("htmx:pushedIntoHistory", mark);
document.body.addEventListener("htmx:afterSettle", () => {
  mark();
  follow();
  goOn();
  show();
});
