// @ts-check
/** The forms of the drawer: what of them is not applied yet, and that it outlives a search. */

import { _, _n } from "./texts.js";

const UNIT = ".tool, #drawer-exposure .field";
const MOST_COMING = 40;
/** @type {{line: HTMLElement, server: string}[]} */
let kept = [];

/** @template {HTMLElement} T @param {ParentNode} place @param {string} selector @returns {T[]} */
const all = (place, selector) => [.../** @type {NodeListOf<T>} */ (place.querySelectorAll(selector))];
/** @param {Element} line @returns {HTMLInputElement} */
const tick = (line) => /** @type {HTMLInputElement} */ (line.querySelector('[data-field="exposed"]'));
/** How many changes are not applied. @param {ParentNode} place */
export const changes = (place) => place.querySelectorAll("[data-edited]").length;

/** @param {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} control */
function differs(control) {
  if (control instanceof HTMLSelectElement) return !control.selectedOptions[0]?.defaultSelected;
  const isTick = control instanceof HTMLInputElement && ["checkbox", "radio"].includes(control.type);
  return isTick ? control.checked !== control.defaultChecked : control.value !== control.defaultValue;
}

/** Other settings of a tool that is and stays hidden are nobody's wish. @param {Element} unit */
function mark(unit) {
  const counts = !unit.matches(".tool") || unit.hasAttribute("data-exposed") || tick(unit).checked;
  const controls = all(unit, '[name]:not([type="hidden"], [data-field="warnings_read"])');
  const changed = unit.hasAttribute("data-typed") || controls.some((each) => differs(/** @type {any} */ (each)));
  unit.toggleAttribute("data-edited", counts && changed);
  const alias = /** @type {HTMLInputElement | null} */ (unit.querySelector('[data-field="alias"]'));
  unit.querySelector("[data-is-default]")?.toggleAttribute("hidden", !["", alias?.placeholder].includes(alias?.value));
}

/** @param {Element} form @param {string} words */
export function say(form, words) {
  const place = form.querySelector("[data-told]");
  if (place && place.textContent !== words) place.textContent = words;
}

/** @param {Element} form */
function standing(form) {
  const many = changes(form);
  return many ? _n("{count} change, not saved.", "{count} changes, not saved.", many) : _("No changes.");
}

/** @param {HTMLElement} form */
function showForm(form) {
  const many = changes(form);
  const asks = /** @type {HTMLInputElement | null} */ (form.querySelector('[name="confirmed"]'));
  form.querySelector("[data-discard]")?.toggleAttribute("disabled", !many && !asks);
  const send = form.querySelector("[data-send]");
  // As long as its question is open, nothing is sent.
  send?.toggleAttribute("disabled", asks ? !asks.checked : !many);
  if (send) send.textContent = many ? _n("Apply {count} change", "Apply {count} changes", many) : _("Apply");
  for (const place of all(form, "[data-problem]")) {
    // Not in all of the form, which may have hundreds of tools, each with several places.
    for (const control of all(place.closest(UNIT) ?? form, `[aria-describedby~="${place.id}"][data-field="${place.dataset.problem}"]`)) {
      if (place.textContent?.trim()) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }
  if (many && !form.querySelector("[data-told]")?.textContent) say(form, standing(form));
  const section = form.closest("[data-server]");
  if (section) showSelected(section);
}

/** @param {Element} section */
function showSelected(section) {
  let selected = Number(section.getAttribute("data-wanted"));
  for (const line of all(section, "[data-edited]")) {
    selected += Number(tick(line).checked) - Number(line.hasAttribute("data-exposed"));
  }
  for (const place of all(section, "[data-selected]")) place.textContent = String(selected);
  const box = section.querySelector("[data-all]");
  if (!(box instanceof HTMLInputElement)) return;
  const ticks = all(section, '[data-field="exposed"]:not(:disabled)').map((each) => /** @type {any} */ (each).checked);
  box.checked = ticks.length > 0 && ticks.every(Boolean);
  box.indeterminate = !box.checked && ticks.some(Boolean);
}

/** How many tools would be exposed. @param {Element} drawer */
function showSum(drawer) {
  const sum = /** @type {HTMLElement} */ (drawer.querySelector("[data-sum]"));
  const change = all(drawer, ".tool[data-edited]").map((line) => Number(tick(line).checked) - Number(line.hasAttribute("data-exposed")));
  const number = /** @type {HTMLElement} */ (sum.querySelector("b"));
  number.textContent = String(change.reduce((before, each) => before + each, Number(sum.dataset.sum)));
}

/** @param {Element} chip @param {string} word */
function label(chip, word) {
  chip.querySelector("[data-word]")?.remove();
  if (!word) return;
  const said = document.createElement("span");
  said.dataset.word = "";
  said.textContent = word;
  chip.append(said);
}

/** The chips, as they will be. Aliases are text that others chose, and stay text. @param {Element} drawer */
function showChips(drawer) {
  const list = /** @type {HTMLElement} */ (drawer.querySelector("[data-chip-list]"));
  for (const chip of all(list, "[data-coming]")) chip.remove();
  for (const chip of all(list, "[data-chip]")) {
    const line = drawer.querySelector(`#tool-${chip.dataset.chip}[data-edited]`);
    const goes = Boolean(line && !tick(line).checked);
    chip.dataset.mark = goes ? "going" : "";
    label(chip, goes ? _("to be removed") : "");
  }
  const coming = all(drawer, ".tool[data-edited]:not([data-exposed])");
  for (const line of coming.slice(0, MOST_COMING)) {
    const alias = /** @type {HTMLInputElement} */ (line.querySelector('[data-field="alias"]'));
    addChip(list, alias.value || alias.placeholder, _("not saved"));
  }
  if (coming.length > MOST_COMING) addChip(list, _("{more} more", { more: coming.length - MOST_COMING }), _("not saved"));
  drawer.querySelector("[data-no-chips]")?.toggleAttribute("hidden", list.childElementCount > 0);
}

/** @param {Element} list @param {string} alias @param {string} word */
function addChip(list, alias, word) {
  const [chip, code] = [document.createElement("li"), document.createElement("code")];
  chip.className = "chip";
  chip.dataset.coming = "";
  code.textContent = alias;
  chip.append(code);
  label(chip, word);
  list.append(chip);
}

/** Everything in the drawer as its forms are now. @param {Element} drawer */
export function show(drawer) {
  for (const unit of all(drawer, UNIT)) mark(unit);
  for (const form of all(drawer, "[data-form]")) showForm(form);
  showChips(drawer);
  showSum(drawer);
}

/** Tick all shown tools of a form, or none; in words what became of it. @param {HTMLElement} form @param {boolean} chosen */
function selectAll(form, chosen) {
  let [many, left] = [0, 0];
  for (const line of all(form, ".tool")) {
    const box = tick(line);
    if (box.disabled || box.checked === chosen) continue;
    if (chosen && line.querySelector('[data-field="warnings_read"]:not(:checked)')) left += 1;
    else {
      box.checked = chosen;
      many += 1;
      mark(line);
    }
  }
  const words = chosen
    ? _n("{count} tool selected.", "{count} tools selected.", many)
    : _n("{count} tool no longer selected.", "{count} tools no longer selected.", many);
  if (!left) return words;
  return `${words} ${_n("{count} other with suspicious texts: look at each before you tick it.", "{count} others with suspicious texts: look at each before you tick it.", left)}`;
}

/** Somebody has filled in something. @param {Element} drawer @param {HTMLElement} control */
export function fill(drawer, control) {
  const form = /** @type {HTMLElement | null} */ (control.closest("[data-form]"));
  if (!form) return undefined;
  if (control.closest("[data-answer]")) return showForm(form);
  const words = control instanceof HTMLInputElement && "all" in control.dataset ? selectAll(form, control.checked) : "";
  const unit = control.closest(UNIT);
  if (unit) mark(unit);
  // Whatever was asked was asked about something else.
  form.querySelector("[data-answer]")?.replaceChildren();
  showForm(form);
  showChips(drawer);
  showSum(drawer);
  return say(form, `${words} ${standing(form)}`.trim());
}

/** Send of a form only what was changed, and how much of it is shown. @param {Element} drawer @param {any} detail */
export function narrow(drawer, { elt, formData, verb, triggeringEvent }) {
  const form = elt.closest("[data-form]");
  if (form) formData.set("most", String(form.querySelectorAll(".tool").length));
  if (form && verb === "post") {
    const edited = new Set(all(form, ".tool[data-edited]").map((line) => line.dataset.tool));
    for (const key of [...formData.keys()]) {
      if (key.includes(".") && !edited.has(key.split(".")[0])) formData.delete(key);
    }
  }
  if (!elt.matches("[data-find]")) return;
  const shown = triggeringEvent?.type === "drawer-changed" ? "[data-server][open]" : "[data-server]:has([data-edited])";
  const sections = all(drawer, shown);
  for (const section of sections) formData.append("server", section.dataset.server);
  formData.set("most", String(Math.max(0, ...sections.map((each) => each.querySelectorAll(".tool").length))));
}

/** What is not applied yet outlives the list that it is in. @param {Element} drawer */
export function keep(drawer) {
  kept = all(drawer, ".tool[data-edited]").map((line) => ({
    line,
    server: line.closest("[data-server]")?.getAttribute("data-server") ?? "",
  }));
  for (const { line } of kept) line.remove();
}

/** @param {Element} drawer */
export function restore(drawer) {
  for (const { line, server } of kept.splice(0).reverse()) {
    const fresh = /** @type {HTMLElement | null} */ (drawer.querySelector(`#${line.id}`));
    const place = fresh?.querySelector('[data-problem=""]');
    if (place && fresh?.dataset.stamp !== line.dataset.stamp) {
      place.textContent = _("The tool has changed in the meantime. Your changes to it were undone.");
    } else if (fresh) fresh.replaceWith(line);
    else drawer.querySelector(`[data-server="${CSS.escape(server)}"] .tools`)?.prepend(line);
    // The early look at it starts again.
    line.closest("[data-form]")?.dispatchEvent(new Event("input"));
  }
}
