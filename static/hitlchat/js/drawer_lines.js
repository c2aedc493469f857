// @ts-check
/** The lines of the drawer: what their controls say, and what the plan makes of them. */

/** @typedef {import("./drawer_plan.js").Plan} Plan */
/** @typedef {HTMLInputElement | HTMLTextAreaElement} Control */
/** In sentences, by the field that they are about. @typedef {Record<string, string>} Problems */

const ORDER = ["DISABLED", "CONDITIONAL", "REQUIRED"];

/** @param {Element} line @param {string} field @returns {Control[]} */
function controls(line, field) {
  return /** @type {Control[]} */ ([...line.querySelectorAll(`[data-field="${field}"]`)]);
}

/** @param {Element} line */
export function tick(line) {
  return /** @type {HTMLInputElement} */ (controls(line, "exposed")[0]);
}

/** The tool of a line as the server told it. @param {HTMLElement} line */
export function toolOf(line) {
  const { tool = "", stamp = "", mode = "" } = line.dataset;
  const server = line.closest("[data-server]")?.getAttribute("data-server") ?? "";
  const alias = controls(line, "alias")[0];
  const name = (alias?.defaultValue || line.dataset.default) ?? "";
  return { tool, stamp, mode, server, name, exposed: tick(line).defaultChecked };
}

/** @param {Control} control */
function valueOf(control) {
  return control.type === "checkbox" ? /** @type {HTMLInputElement} */ (control).checked : control.value;
}

/** What the server said, before anyone touched it. @param {Control} control @param {Element} line */
function before(control, line) {
  if (control.type === "radio") return line.getAttribute("data-mode") ?? "";
  return control.type === "checkbox" ? /** @type {HTMLInputElement} */ (control).defaultChecked : control.defaultValue;
}

/** Take what a control says into the plan. @param {Control} control @param {Plan} plan */
export function take(control, plan) {
  const line = /** @type {HTMLElement} */ (control.closest("[data-tool]"));
  const field = control.dataset.field ?? "";
  const tool = toolOf(line);
  if (field === "warnings_read") plan.read(tool.tool, /** @type {HTMLInputElement} */ (control).checked);
  else plan.set(tool, field, valueOf(control), before(control, line));
}

/** @param {Control} control @param {string | boolean} value */
function put(control, value) {
  if (control instanceof HTMLInputElement && control.type === "radio") control.checked = control.value === value;
  else if (control instanceof HTMLInputElement && control.type === "checkbox") control.checked = Boolean(value);
  else if (control.value !== value) control.value = String(value);
}

/** Show what the plan makes of a line. @param {HTMLElement} line @param {Plan} plan @param {number} ceiling */
export function show(line, plan, ceiling) {
  const tool = toolOf(line);
  const edit = plan.edits.get(tool.tool);
  const stale = edit && edit.tool.stamp !== tool.stamp;
  // Whoever chose saw another tool than this one.
  if (stale) plan.edits.delete(tool.tool);
  for (const control of /** @type {NodeListOf<Control>} */ (line.querySelectorAll("[data-field]"))) {
    const field = control.dataset.field ?? "";
    if (field === "warnings_read") put(control, plan.edits.get(tool.tool)?.read ?? false);
    else put(control, plan.value(tool.tool, field) ?? before(control, line));
  }
  showCeiling(line, ceiling);
  showLowered(line, plan);
  showDefault(line);
  line.toggleAttribute("data-edited", plan.edits.has(tool.tool));
  if (stale) tell(line, { "": "It has changed since you chose. Your changes of it were taken back." });
}

/** @param {HTMLElement} line @param {number} ceiling */
function showCeiling(line, ceiling) {
  const above = Number(line.dataset.risk) > ceiling;
  const box = tick(line);
  line.toggleAttribute("data-above", above);
  box.disabled = !box.checked && (above || line.hasAttribute("data-obstacle"));
  const words = line.querySelector("[data-above-words]");
  const means = !box.checked ? "stays out" : box.defaultChecked ? "withheld" : "cannot be exposed";
  if (words) words.textContent = above ? `Above your limit of L${ceiling}: ${means}` : "";
}

/** @param {HTMLElement} line @param {Plan} plan */
function showLowered(line, plan) {
  const tool = toolOf(line);
  const now = ORDER.indexOf(plan.mode(tool));
  const lowered = plan.exposes(tool) && now < ORDER.indexOf(tool.mode);
  line.querySelector("[data-lowered]")?.toggleAttribute("hidden", !lowered);
  const trusts = plan.exposes(tool) && plan.value(tool.tool, "signed_in_only") === false;
  line.querySelector("[data-trusts]")?.toggleAttribute("hidden", !trusts);
}

/** @param {HTMLElement} line */
function showDefault(line) {
  const alias = controls(line, "alias")[0];
  const isDefault = ["", line.dataset.default].includes(alias?.value);
  line.querySelector("[data-is-default]")?.toggleAttribute("hidden", !isDefault);
}

/** What speaks against it, each under its field, the rest beside the tool; nothing takes it away.
 * @param {Element} line @param {Problems} said */
export function tell(line, said) {
  const rest = { ...said };
  for (const place of line.querySelectorAll('[data-problem]:not([data-problem=""])')) {
    const field = place.getAttribute("data-problem") ?? "";
    write(place, rest[field] ?? "");
    delete rest[field];
    for (const control of controls(line, field)) {
      if (said[field]) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }
  const place = line.querySelector('[data-problem=""]');
  if (place) write(place, Object.values(rest).join(" "));
}

/** Only if it differs: a screen reader says it each time. @param {Element} place @param {string} words */
function write(place, words) {
  if (place.textContent !== words) place.textContent = words;
}
