// @ts-check
/** The Studio's list of tools: which groups are folded is remembered, and the tool that is looked at is in sight. */

const KEY = "studio-folded-groups";

/** @returns {Set<string>} */
function folded() {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
  } catch {
    return new Set();
  }
}

/** @param {HTMLDetailsElement} group */
function remember(group) {
  const names = folded();
  if (group.open) names.delete(group.dataset.group ?? "");
  else names.add(group.dataset.group ?? "");
  localStorage.setItem(KEY, JSON.stringify([...names]));
}

for (const group of document.querySelectorAll("details[data-group]")) {
  if (!(group instanceof HTMLDetailsElement)) continue;
  // Where one searches, or looks at a tool of it, a folded group would hide the very thing.
  if (folded().has(group.dataset.group ?? "") && !group.hasAttribute("data-stays-open")) group.open = false;
  group.querySelector("summary")?.addEventListener("click", () => setTimeout(() => remember(group)));
}
document.querySelector("[data-groups] [aria-current]")?.scrollIntoView({ block: "nearest" });
