// @ts-check
/** The Composed Tools drawer: opened over a page, closed again, and everything that is changed in it. */

import { requireForAll, selectAll } from "./drawer_bulk.js";
import { ceiling, resetExposure, showExposure, takeExposure } from "./drawer_exposure.js";
import { show, take, tell } from "./drawer_lines.js";
import { Plan } from "./drawer_plan.js";
import { apply, checkSoon, forget, problems } from "./drawer_send.js";
import { connectWays, openDrawer } from "./drawer_ways.js";
import { say, showTotals, standing } from "./drawer_totals.js";

const plan = new Plan();

/** @returns {HTMLDialogElement | null} */
function current() {
  return document.querySelector("dialog[data-composed]");
}

/** Everything on the page as the plan has it. @param {HTMLElement} drawer */
function showAll(drawer) {
  showExposure(drawer);
  const most = ceiling(drawer);
  for (const line of /** @type {NodeListOf<HTMLElement>} */ (drawer.querySelectorAll("[data-tool]"))) {
    show(line, plan, most);
    const said = problems.get(line.dataset.tool ?? "");
    if (said) tell(line, said);
  }
  showTotals(drawer, plan);
}

/** What was found is in sight from its beginning. @param {HTMLElement} drawer @param {HTMLElement} form */
function showFound(drawer, form) {
  const [body, found] = [drawer.querySelector("[data-body]"), drawer.querySelector("#drawer-servers")];
  if (!body || !(found instanceof HTMLElement)) return;
  body.scrollTop = Math.min(body.scrollTop, found.offsetTop - form.offsetHeight);
}

/** @param {HTMLElement} drawer */
function forgetAnswer(drawer) {
  drawer.querySelector("[data-answer]")?.replaceChildren();
}

/** @param {HTMLElement} drawer @param {HTMLInputElement | HTMLTextAreaElement} control */
function changed(drawer, control) {
  const line = /** @type {HTMLElement} */ (control.closest("[data-tool]"));
  take(control, plan);
  forget(line, control.dataset.field ?? "");
  show(line, plan, ceiling(drawer));
  showTotals(drawer, plan);
  say(drawer, standing(plan.size));
  forgetAnswer(drawer);
  checkSoon(drawer, plan, line.dataset.tool ?? "");
}

/** @param {HTMLElement} drawer */
function discard(drawer) {
  plan.clear();
  problems.clear();
  resetExposure(drawer);
  forgetAnswer(drawer);
  for (const line of /** @type {NodeListOf<HTMLElement>} */ (drawer.querySelectorAll("[data-tool]"))) tell(line, {});
  showAll(drawer);
  say(drawer, standing(0));
}

/** @param {HTMLElement} drawer @param {() => Promise<string>} work */
async function bulk(drawer, work) {
  let words = "";
  try {
    words = await work();
  } catch (error) {
    words = `That did not work: ${error instanceof Error ? error.message : error}.`;
  }
  forgetAnswer(drawer);
  showAll(drawer);
  say(drawer, `${words} ${standing(plan.size)}`);
}

/** @param {HTMLElement} drawer @param {Element} pressed */
function press(drawer, pressed) {
  if (pressed.matches("[data-discard]")) discard(drawer);
  else if (pressed.matches("[data-send]")) void apply(drawer, plan, () => showAll(drawer));
  else if (pressed.matches("[data-require-all]")) void bulk(drawer, () => requireForAll(drawer, plan));
}

document.addEventListener("click", (event) => {
  const drawer = current();
  const button = event.target instanceof Element ? event.target.closest("button") : null;
  if (drawer && button && drawer.contains(button)) press(drawer, button);
});
document.addEventListener("input", (event) => {
  const drawer = current();
  const control = event.target;
  if (!drawer || !(control instanceof Element) || !drawer.contains(control)) return;
  if (control.matches("[data-field]")) changed(drawer, /** @type {HTMLInputElement} */ (control));
  else if (control.closest("[data-exposure]")) {
    takeExposure(drawer, plan);
    forgetAnswer(drawer);
    showAll(drawer);
    say(drawer, standing(plan.size));
  } else if (control instanceof HTMLInputElement && control.dataset.all) {
    const { all: server, checked } = { all: control.dataset.all, checked: control.checked };
    control.ariaBusy = "true";
    void bulk(drawer, () => selectAll(drawer, plan, server, checked).finally(() => (control.ariaBusy = null)));
  }
});
document.addEventListener("htmx:afterSettle", (event) => {
  const drawer = current();
  if (!drawer) return;
  openDrawer(drawer);
  showAll(drawer);
  const asked = /** @type {CustomEvent} */ (event).detail?.requestConfig?.elt;
  if (asked instanceof HTMLElement && asked.matches("[data-find]")) showFound(drawer, asked);
});
connectWays(plan, discard);
const waiting = current();
if (waiting) {
  openDrawer(waiting);
  showAll(waiting);
}

