// @ts-check
/** What the drawer asks its server: what speaks against the plan, and to carry it out. */

import { filters } from "./drawer_bulk.js";
import { tell } from "./drawer_lines.js";
import { counted, say } from "./drawer_totals.js";

/** @typedef {import("./drawer_plan.js").Plan} Plan */
/** @typedef {import("./drawer_lines.js").Problems} Problems */

const QUIET_MS = 400;
/** With more, only the names that were chosen go along: those are what could collide. */
const MOST_CHECKED = 100;
const NOBODY = "00000000-0000-0000-0000-000000000000";
const KEPT = "Nothing was applied, and your changes are kept here.";

/** What speaks against each tool, by its id, also while its line is not on the page. @type {Map<string, Problems>} */
export const problems = new Map();
let pending = 0;
/** Which look at the plan is the last: what an earlier one found is not said any more. */
let turn = 0;

/** @param {string} method @param {string} url @param {Element} target @param {Record<string, string>} [values] */
function ask(method, url, target, values = {}) {
  // @ts-ignore - htmx is a global of its own script
  return window.htmx.ajax(method, url, { source: target, target, swap: "innerHTML", values });
}

/** Put what the server says of tools beside their lines. @param {HTMLElement} drawer @param {Plan} plan @param {Element} answer @param {string[]} about */
function spread(drawer, plan, answer, about) {
  for (const tool of about) problems.delete(tool);
  for (const told of /** @type {NodeListOf<HTMLElement>} */ (answer.querySelectorAll("[data-problem-for]"))) {
    const { problemFor: tool = "", stamp = "" } = told.dataset;
    // The line was shown as it is now, and its changes taken back, while this answer was on its way.
    if (stamp && !plan.edits.has(tool) && lineOf(drawer, tool)?.dataset.stamp === stamp) continue;
    if (!stamp) plan.edits.delete(tool);
    else problems.set(tool, saidIn(told));
    renew(drawer, tool, stamp);
  }
  for (const line of /** @type {NodeListOf<HTMLElement>} */ (drawer.querySelectorAll("[data-tool]"))) {
    const tool = line.dataset.tool ?? "";
    if (about.includes(tool) || problems.has(tool)) tell(line, problems.get(tool) ?? {});
  }
}

/** @param {Element} told @returns {Problems} */
function saidIn(told) {
  /** @type {Problems} */
  const found = {};
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (told.querySelectorAll("[data-said]"))) {
    const field = part.dataset.said ?? "";
    found[field] = `${found[field] ?? ""} ${part.textContent?.trim()}`.trim();
  }
  return found;
}

/** What is said of a field counts no longer once that is another one. @param {Element} line @param {string} field */
export function forget(line, field) {
  const said = problems.get(line.getAttribute("data-tool") ?? "");
  if (!said) return;
  delete said[field];
  tell(line, said);
}

/** @param {HTMLElement} drawer @param {string} tool */
function lineOf(drawer, tool) {
  return /** @type {HTMLElement | null} */ (drawer.querySelector(`#tool-${CSS.escape(tool)}`));
}

/** Show a tool as it is now, if it is another one than is shown. @param {HTMLElement} drawer @param {string} tool @param {string} stamp */
function renew(drawer, tool, stamp) {
  const line = lineOf(drawer, tool);
  if (!line || !stamp || line.dataset.stamp === stamp) return;
  problems.delete(tool);
  const url = (drawer.dataset.line ?? "").replace(NOBODY, tool);
  // @ts-ignore - htmx is a global of its own script
  void window.htmx.ajax("GET", url, { source: line, target: line, swap: "outerHTML" });
}

/** Look at one tool's changes once nothing was typed for a moment. @param {HTMLElement} drawer @param {Plan} plan @param {string} tool */
export function checkSoon(drawer, plan, tool) {
  clearTimeout(pending);
  pending = setTimeout(() => void check(drawer, plan, tool), QUIET_MS);
}

/** @param {HTMLElement} drawer @param {Plan} plan @param {string} tool */
async function check(drawer, plan, tool) {
  const all = plan.standing;
  const few = all.filter((edit) => edit.tool.tool === tool || all.length <= MOST_CHECKED || edit.fields.has("alias"));
  const place = drawer.querySelector("#drawer-checked");
  if (!place) return;
  const mine = ++turn;
  await ask("POST", drawer.dataset.check ?? "", place, { plan: plan.json(few) });
  if (mine === turn) spread(drawer, plan, place, [tool, ...few.map((edit) => edit.tool.tool)]);
}

/** The servers anew, as they are shown now. @param {HTMLElement} drawer */
export function reload(drawer) {
  const asked = new URLSearchParams(filters(drawer));
  let most = 0;
  for (const section of drawer.querySelectorAll("details[data-server][open]")) {
    asked.append("server", section.getAttribute("data-server") ?? "");
    most = Math.max(most, section.querySelectorAll("[data-tool]").length);
  }
  asked.set("most", String(most));
  const place = drawer.querySelector("#drawer-servers");
  const url = drawer.querySelector("[data-find]")?.getAttribute("hx-get");
  return place && url ? ask("GET", `${url}?${asked}`, place) : Promise.resolve();
}

/** Carry out the plan; `done` shows what is left of it. @param {HTMLElement} drawer @param {Plan} plan @param {() => void} done */
export async function apply(drawer, plan, done) {
  const place = /** @type {HTMLElement} */ (drawer.querySelector("[data-answer]"));
  const box = place.querySelector("[data-confirm]");
  const asked = place.querySelector("[data-confirms]")?.getAttribute("data-confirms") ?? "";
  if (box instanceof HTMLInputElement && !box.checked) return box.focus();
  const send = /** @type {HTMLButtonElement} */ (drawer.querySelector("[data-send]"));
  send.disabled = true;
  clearTimeout(pending);
  turn += 1;
  say(drawer, "Applying…");
  place.removeAttribute("data-failed");
  await ask("POST", drawer.dataset.apply ?? "", place, { plan: plan.json(plan.standing, asked) });
  if (place.hasAttribute("data-failed")) return undefined;
  const outcome = place.querySelector("[data-outcome]");
  return become(drawer, plan, place, outcome, done);
}

/** @param {HTMLElement} drawer @param {Plan} plan @param {Element} place @param {Element | null} outcome @param {() => void} done */
async function become(drawer, plan, place, outcome, done) {
  const what = outcome?.getAttribute("data-outcome");
  if (what === "applied") {
    const many = Number(outcome?.getAttribute("data-many"));
    plan.clear();
    problems.clear();
    place.replaceChildren();
    await reload(drawer);
    done();
    say(drawer, `${counted(many, "change")} applied. ${many === 1 ? "It counts" : "They count"} from now on.`);
    // @ts-ignore - htmx is a global of its own script
    window.htmx.trigger(document.body, "servers-changed");
    return;
  }
  // A question is asked only once nothing speaks against the plan.
  if (what) spread(drawer, plan, place, plan.standing.map((edit) => edit.tool.tool));
  done();
  say(drawer, what === "question" ? "Nothing was applied yet: one question is open." : KEPT);
  const heading = place.querySelector("[data-question]") ?? outcome;
  if (heading instanceof HTMLElement) heading.focus();
}

/** The server did not do what it was asked. @param {HTMLElement} drawer @param {string} why */
export function failed(drawer, why) {
  drawer.querySelector("[data-answer]")?.setAttribute("data-failed", "");
  const send = drawer.querySelector("[data-send]");
  if (send instanceof HTMLButtonElement) send.disabled = false;
  say(drawer, `${why} ${KEPT}`);
}
