// @ts-check
/** Rows of headers or variables: added, removed and filled in, and secrets not readable while they are typed. */

const REFERENCE = /^([A-Za-z][A-Za-z0-9-]* )?\$\{\w*\}?$/;

/** @param {Element} row @param {string} part @returns {HTMLInputElement} */
const field = (row, part) => /** @type {HTMLInputElement} */ (row.querySelector(`[data-${part}]`));

/** @param {Element} row */
function hideSecret(row) {
  const value = field(row, "value");
  const hidden = field(row, "secret").checked && value.value !== "" && !REFERENCE.test(value.value);
  value.type = hidden && document.activeElement !== value ? "password" : "text";
  // A browser offers to keep what stands in a field of passwords, unless it is told that it is a new one.
  value.autocomplete = hidden ? "new-password" : "off";
}

/** Every row has its number in its fields' ids, and as what its tick says. @param {Element} row @param {number} number */
function renumber(row, number) {
  for (const part of row.querySelectorAll("[id], [for]")) {
    for (const name of ["id", "for"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replace(/\d+$/, String(number)));
    }
  }
  field(row, "number").value = field(row, "secret").value = String(number);
  const legend = row.querySelector("legend");
  if (legend) legend.textContent = (legend.textContent ?? "").replace(/\d+$/, String(number));
}

/** @param {Element} group @param {() => void} changed */
export function connectRows(group, changed) {
  const rows = group.querySelector("[data-rows]");
  const add = group.querySelector("[data-add]");
  const spare = [...group.querySelectorAll("[data-spare]")];
  const blank = /** @type {Element | undefined} */ (spare.at(-1)?.cloneNode(true));
  if (!rows || !(add instanceof HTMLElement) || !blank) return;
  // Without a script they are there to be filled in; with one, they come when they are wanted.
  spare.forEach((row) => row.remove());
  let number = rows.children.length;

  const connect = (/** @type {Element} */ row) => {
    hideSecret(row);
    row.querySelector("[data-remove]")?.removeAttribute("hidden");
  };
  const addRow = () => {
    const row = /** @type {Element} */ (blank.cloneNode(true));
    number += 1;
    renumber(row, number);
    rows.append(row);
    connect(row);
    return row;
  };
  add.hidden = false;
  add.addEventListener("click", () => field(addRow(), "name").focus());
  group.querySelector("[data-presets]")?.removeAttribute("hidden");
  group.addEventListener("click", (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("[data-preset], [data-remove]") : null;
    if (pressed?.hasAttribute("data-remove")) {
      pressed.closest("[data-row]")?.remove();
      add.focus();
      changed();
    } else if (pressed) {
      fillIn(pressed, [...rows.children], addRow);
      changed();
    }
  });
  for (const kind of ["input", "change", "focusin", "focusout"]) {
    group.addEventListener(kind, (event) => {
      const row = event.target instanceof Element ? event.target.closest("[data-row]") : null;
      // The field that is left still has the focus while it is told so.
      if (row) setTimeout(() => hideSecret(row));
    });
  }
  rows.querySelectorAll("[data-row]").forEach(connect);
}

/** The row of that header, or an empty one, or a new one; ready for the secret to be typed. */
/** @param {Element} preset @param {Element[]} rows @param {() => Element} addRow */
function fillIn(preset, rows, addRow) {
  const name = preset.getAttribute("data-preset") ?? "";
  const same = rows.find((row) => field(row, "name").value.toLowerCase() === name.toLowerCase());
  const blank = rows.find((row) => ["name", "value"].every((part) => field(row, part).value === "") && !row.querySelector("[name$=-sealed]")?.getAttribute("value"));
  const row = same ?? blank ?? addRow();
  field(row, "name").value = name;
  field(row, "value").value = preset.getAttribute("data-text") ?? "";
  field(row, "secret").checked = true;
  field(row, "value").focus();
}
