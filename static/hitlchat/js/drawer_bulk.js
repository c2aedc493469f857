// @ts-check
/** Changes of many tools at once, of which most need not be on the page. */

import { ceiling } from "./drawer_exposure.js";
import { counted } from "./drawer_totals.js";

/** @typedef {import("./drawer_plan.js").Plan} Plan */
/** @typedef {import("./drawer_plan.js").Tool} Tool */

/** @param {HTMLElement} drawer @param {Record<string, string>} query @returns {Promise<{tools: Tool[], left: number}>} */
async function choices(drawer, query) {
  const asked = new URLSearchParams({ ceiling: String(ceiling(drawer)), ...query });
  const answer = await fetch(`${drawer.dataset.choices}?${asked}`, { headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

/** What is filtered by. @param {HTMLElement} drawer */
export function filters(drawer) {
  const form = /** @type {HTMLFormElement} */ (drawer.querySelector("[data-find]"));
  const data = new FormData(form);
  return { find: String(data.get("find") ?? ""), show: String(data.get("show") ?? "") };
}

/** Tick all tools of a server, or none; in words what became of it.
 * @param {HTMLElement} drawer @param {Plan} plan @param {string} server @param {boolean} exposed */
export async function selectAll(drawer, plan, server, exposed) {
  const { tools, left } = await choices(drawer, { server, ...filters(drawer) });
  let many = 0;
  for (const tool of tools) {
    if (plan.exposes(tool) !== exposed) many += 1;
    plan.set(tool, "exposed", exposed, tool.exposed);
  }
  const words = `${counted(many, "tool")} ${exposed ? "selected" : "no longer selected"}.`;
  if (!exposed || !left) return words;
  return `${words} ${counted(left, "other")} with suspicious texts: look at each before you tick it.`;
}

/** @param {HTMLElement} drawer @param {Plan} plan */
export async function requireForAll(drawer, plan) {
  const { tools } = await choices(drawer, { show: "lenient", ceiling: "5" });
  const known = new Map(tools.map((tool) => [tool.tool, tool]));
  for (const { tool } of plan.edits.values()) known.set(tool.tool, tool);
  let many = 0;
  for (const tool of known.values()) {
    if (!plan.exposes(tool) || plan.mode(tool) === "REQUIRED") continue;
    plan.set(tool, "hitl_mode", "REQUIRED", tool.mode);
    many += 1;
  }
  return many ? `${counted(many, "selected tool")} will ask every time.` : "All selected tools ask every time already.";
}
