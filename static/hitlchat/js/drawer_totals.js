// @ts-check
/** What the drawer says of all lines together: how many changes, how many selected, the chips, what a ceiling means. */

/** @typedef {import("./drawer_plan.js").Plan} Plan */

const MOST_COMING = 40;

/** @param {number} many @param {string} word */
export function counted(many, word) {
  return `${many.toLocaleString("en")} ${word}${many === 1 ? "" : "s"}`;
}

/** @param {HTMLElement} drawer @param {Plan} plan */
export function showTotals(drawer, plan) {
  showFoot(drawer, plan.size);
  showChips(drawer, plan);
  for (const section of drawer.querySelectorAll("[data-server]")) showSelected(section, plan);
}

/** @param {Element} drawer @param {number} changes */
function showFoot(drawer, changes) {
  const [send, discard] = ["[data-send]", "[data-discard]"].map((place) => drawer.querySelector(place));
  if (!(send instanceof HTMLButtonElement) || !(discard instanceof HTMLButtonElement)) return;
  send.disabled = discard.disabled = changes === 0;
  send.textContent = changes ? `Apply ${counted(changes, "change")}` : "Apply";
}

/** @param {number} changes */
export function standing(changes) {
  return changes ? `${counted(changes, "change")}, not saved.` : "No changes.";
}

/** @param {Element} drawer @param {string} words */
export function say(drawer, words) {
  const place = drawer.querySelector("[data-told]");
  if (place && place.textContent !== words) place.textContent = words;
}

/** @param {Element} section @param {Plan} plan */
function showSelected(section, plan) {
  const server = section.getAttribute("data-server");
  let selected = Number(section.getAttribute("data-wanted"));
  for (const { tool, fields } of plan.edits.values()) {
    const exposed = fields.get("exposed");
    if (tool.server === server && exposed !== undefined) selected += exposed ? 1 : -1;
  }
  for (const place of section.querySelectorAll("[data-selected]")) place.textContent = String(selected);
  const box = section.querySelector("[data-all]");
  // What it asks for is still on its way.
  if (!(box instanceof HTMLInputElement) || box.ariaBusy) return;
  const [there, ticked] = box.dataset.most ? [Number(box.dataset.most), selected] : ticks(section);
  box.checked = ticked > 0 && ticked >= there;
  box.indeterminate = ticked > 0 && ticked < there;
}

/** Of the lines that are shown: how many can be ticked, and how many are. @param {Element} section */
function ticks(section) {
  const boxes = /** @type {HTMLInputElement[]} */ ([...section.querySelectorAll('[data-field="exposed"]:not(:disabled)')]);
  return [boxes.length, boxes.filter((box) => box.checked).length];
}

/** @param {HTMLElement} drawer @param {Plan} plan */
function showChips(drawer, plan) {
  const list = drawer.querySelector("[data-chip-list]");
  if (!list) return;
  for (const chip of list.querySelectorAll("[data-coming]")) chip.remove();
  for (const chip of list.querySelectorAll("[data-chip]")) {
    const goes = plan.value(chip.getAttribute("data-chip") ?? "", "exposed") === false;
    mark(chip, goes ? "going" : "");
  }
  const coming = plan.standing.filter(({ fields }) => fields.get("exposed") === true);
  list.append(...coming.slice(0, MOST_COMING).map(({ tool, fields }) => chipOf(String(fields.get("alias") || tool.name))));
  if (coming.length > MOST_COMING) list.append(chipOf(`${coming.length - MOST_COMING} more`));
  drawer.querySelector("[data-no-chips]")?.toggleAttribute("hidden", list.childElementCount > 0);
}

/** @param {Element} chip @param {string} word */
function mark(chip, word) {
  if ((chip.getAttribute("data-mark") ?? "") === word) return;
  chip.setAttribute("data-mark", word);
  chip.querySelector("[data-word]")?.remove();
  if (!word) return;
  const said = document.createElement("span");
  said.dataset.word = "";
  said.textContent = word;
  chip.append(said);
}

/** Text that others chose: it stays text. @param {string} alias */
function chipOf(alias) {
  const chip = document.createElement("li");
  const code = document.createElement("code");
  chip.className = "chip";
  chip.dataset.coming = "";
  code.textContent = alias;
  chip.append(code);
  mark(chip, "not saved");
  return chip;
}
