// @ts-check
/** Exposure mode and ceiling: what is chosen, and in words what that means. */

/** @typedef {import("./drawer_plan.js").Plan} Plan */

/** @param {Element} drawer @param {string} selector @param {string} chosen */
function showWords(drawer, selector, chosen) {
  for (const words of drawer.querySelectorAll(`[${selector}]`)) {
    words.toggleAttribute("hidden", words.getAttribute(selector) !== chosen);
  }
}

/** @param {Element} drawer @returns {HTMLFormElement} */
function form(drawer) {
  return /** @type {HTMLFormElement} */ (drawer.querySelector("[data-exposure]"));
}

/** The ceiling as it is chosen. @param {Element} drawer */
export function ceiling(drawer) {
  return Number(new FormData(form(drawer)).get("ceiling"));
}

/** Take what is chosen into the plan, and say what it means. @param {Element} drawer @param {Plan} plan */
export function takeExposure(drawer, plan) {
  const chosen = form(drawer);
  const mode = String(new FormData(chosen).get("mode"));
  const was = { was_mode: chosen.dataset.mode ?? "", was_ceiling: Number(chosen.dataset.ceiling) };
  const differs = mode !== was.was_mode || ceiling(drawer) !== was.was_ceiling;
  plan.exposure = differs ? { mode, ceiling: ceiling(drawer), ...was } : null;
  showExposure(drawer);
}

/** @param {Element} drawer */
export function showExposure(drawer) {
  showWords(drawer, "data-mode-words", String(new FormData(form(drawer)).get("mode")));
  showWords(drawer, "data-ceiling-words", String(ceiling(drawer)));
}

/** Back to what the server said. @param {Element} drawer */
export function resetExposure(drawer) {
  form(drawer).reset();
  showExposure(drawer);
}
