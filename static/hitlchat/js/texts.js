// @ts-check
/** Texts of scripts in the language of the page: English as they stand, others from `texts.<language>.js`. */

/** @type {Record<string, string | string[]>} By the English text; of plurals, by that for one. */
const known = {};

/** @param {Record<string, string | string[]>} texts */
export const learn = (texts) => void Object.assign(known, texts);

/**
 * The text, with `{name}` replaced by each of the values.
 * @param {string} text
 * @param {Record<string, unknown>} [values]
 */
export function _(text, values = {}) {
  const found = known[text] ?? text;
  return fill(typeof found === "string" ? found : found[0], values);
}

/**
 * The text for so many, which `{count}` stands for.
 * @param {string} one
 * @param {string} many
 * @param {number} count
 * @param {Record<string, unknown>} [values]
 */
export function _n(one, many, count, values = {}) {
  const found = known[one] ?? [one, many];
  const text = typeof found === "string" ? found : found[count === 1 ? 0 : 1];
  return fill(text, { count: count.toLocaleString(document.documentElement.lang), ...values });
}

/** @param {string} text @param {Record<string, unknown>} values */
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => String(name in values ? values[name] : whole));
