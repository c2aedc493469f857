// @ts-check
/** What was changed in the drawer and not applied yet: also of tools that are not on the page at the moment. */

/** A tool as it stands. @typedef {{tool: string, stamp: string, server: string, name: string, mode: string, exposed: boolean}} Tool */
/** @typedef {{tool: Tool, fields: Map<string, string | boolean>, read: boolean}} Edit */

export class Plan {
  /** By the ids of tools. @type {Map<string, Edit>} */
  edits = new Map();
  /** Of exposure mode and ceiling together, with what both were. @type {Record<string, string | number> | null} */
  exposure = null;

  /** @param {string} id @param {string} field */
  value(id, field) {
    return this.edits.get(id)?.fields.get(field);
  }

  /** @param {Tool} tool @param {string} field @param {string | boolean} value @param {string | boolean} before */
  set(tool, field, value, before) {
    const edit = this.edits.get(tool.tool) ?? { tool, fields: new Map(), read: false };
    if (value === before) edit.fields.delete(field);
    else edit.fields.set(field, value);
    if (edit.fields.size) this.edits.set(tool.tool, edit);
    else this.edits.delete(tool.tool);
  }

  /** @param {string} id @param {boolean} read */
  read(id, read) {
    const edit = this.edits.get(id);
    if (edit) edit.read = read;
  }

  /** Will it be exposed? @param {Tool} tool */
  exposes(tool) {
    return Boolean(this.value(tool.tool, "exposed") ?? tool.exposed);
  }

  /** Which HITL mode will it have? @param {Tool} tool */
  mode(tool) {
    return String(this.value(tool.tool, "hitl_mode") ?? tool.mode);
  }

  /** What is applied: other settings of a tool that is and stays hidden are nobody's wish. */
  get standing() {
    return [...this.edits.values()].filter((edit) => edit.tool.exposed || edit.fields.get("exposed"));
  }

  get size() {
    const { mode, was_mode: wasMode, ceiling, was_ceiling: wasCeiling } = this.exposure ?? {};
    return this.standing.length + Number(mode !== wasMode) + Number(ceiling !== wasCeiling);
  }

  clear() {
    this.edits.clear();
    this.exposure = null;
  }

  /** As the server reads it. @param {Edit[]} edits @param {string} confirmed */
  json(edits = this.standing, confirmed = "") {
    const changes = edits.map(({ tool, fields, read }) => {
      const change = { tool: tool.tool, stamp: tool.stamp, ...Object.fromEntries(fields) };
      return read ? { ...change, warnings_read: true } : change;
    });
    return JSON.stringify({ changes, exposure: this.exposure, confirmed });
  }
}
