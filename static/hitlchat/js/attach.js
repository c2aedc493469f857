// @ts-check
/** Files for the message that is being written: picked, pasted or dropped, sent ahead, and kept with the draft. */

import { takesInstead } from "./whole.js";

/** @typedef {{id: string, name: string, mediaType: string, size: number, note?: string}} Kept */

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
const KIB = 1024;

/** What cannot be seen in a name, as its code. @param {string} name */
function visible(name) {
  return name.replace(HIDDEN, (character) => `U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`);
}

/** @param {number} bytes */
function inWords(bytes) {
  if (bytes < KIB) return `${bytes} B`;
  return bytes < KIB * KIB ? `${Math.round(bytes / KIB)} KB` : `${(bytes / KIB / KIB).toFixed(1)} MB`;
}

function headers() {
  // What is refused is told to the person, in the language of the page.
  return { ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"), "Hitlchat-Page": "1" };
}

/** Is a text of the page being written elsewhere than in this form? @param {EventTarget | null} target @param {HTMLFormElement} form */
function isElsewhere(target, form) {
  const field = target instanceof Element && target.closest("input, textarea, [contenteditable]");
  return Boolean(field) && !form.contains(/** @type {Element} */ (field));
}

/** @param {DataTransfer | null} given */
function holdsFiles(given) {
  return Boolean(given?.types.includes("Files"));
}

/**
 * The conversation that the files go to; one is begun where there is none yet.
 * @param {HTMLFormElement} form @param {HTMLInputElement} pick
 */
function destination(form, pick) {
  const field = /** @type {HTMLInputElement | null} */ (form.querySelector("[name=conversation]"));
  /** @type {Promise<string> | null} */
  let begun = null;
  const begin = async () => {
    const answer = await fetch("/api/conversations", { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: '{"draft": true}' });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return (await answer.json()).id;
  };
  return {
    /** @param {string} id */
    take(id) {
      if (field) field.value = id;
    },
    id: () => field?.value ?? "",
    async url() {
      if (pick.dataset.url) return pick.dataset.url;
      if (field && !field.value) field.value = await (begun ??= begin());
      return field?.value ? `/api/conversations/${field.value}/attachments` : "";
    },
  };
}

/**
 * Have files attached to what is written in `form`; `changed` is told whenever they are others. `send`: what waited for
 * them is due.
 * @param {HTMLFormElement} form @param {() => void} changed @param {() => void} send
 */
export function offerFiles(form, changed, send) {
  const pick = /** @type {HTMLInputElement} */ (form.querySelector("[data-pick]"));
  const chips = /** @type {HTMLElement} */ (form.querySelector("[data-chips]"));
  const pattern = /** @type {HTMLTemplateElement} */ (form.querySelector("[data-chip]"));
  const told = /** @type {HTMLElement} */ (form.querySelector("[data-files-told]"));
  const wait = /** @type {HTMLElement} */ (form.querySelector("[data-files-wait]"));
  const dropHere = /** @type {HTMLElement} */ (form.querySelector("[data-drop-here]"));
  const key = `files:${window.location.pathname}`;
  const to = destination(form, pick);
  /** What stands in the list, and what is kept of it once the server has it. @type {Map<HTMLElement, Kept | null>} */
  const shown = new Map();
  /** Those on their way. @type {Map<HTMLElement, XMLHttpRequest | null>} */
  const underway = new Map();

  const kept = () => /** @type {Kept[]} */ ([...shown.values()].filter(Boolean));

  function update() {
    chips.hidden = shown.size === 0;
    if (kept().length) sessionStorage.setItem(key, JSON.stringify({ conversation: to.id(), files: kept() }));
    else sessionStorage.removeItem(key);
    changed();
    if (underway.size || wait.hidden) return;
    wait.hidden = true;
    send();
  }

  /** @param {HTMLElement} chip */
  function drop(chip) {
    const had = chip.contains(document.activeElement);
    const next = /** @type {HTMLElement | null} */ ((chip.nextElementSibling ?? chip.previousElementSibling)?.querySelector("button") ?? null);
    underway.get(chip)?.abort();
    underway.delete(chip);
    shown.delete(chip);
    chip.remove();
    if (had) (next ?? pick).focus();
    update();
  }

  /** @param {HTMLElement} chip */
  function remove(chip) {
    const file = shown.get(chip);
    drop(chip);
    // What is not removed there now is swept with other drafts.
    if (file) fetch(`/api/attachments/${file.id}`, { method: "DELETE", headers: headers() }).catch(() => undefined);
  }

  /** @param {{name: string, size: number}} file */
  function place(file) {
    const chip = /** @type {HTMLElement} */ (/** @type {DocumentFragment} */ (pattern.content.cloneNode(true)).firstElementChild);
    const button = /** @type {HTMLElement} */ (chip.querySelector("button"));
    const name = visible(file.name);
    /** @type {HTMLElement} */ (chip.querySelector("[data-name]")).textContent = name;
    /** @type {HTMLElement} */ (chip.querySelector("[data-size]")).textContent = inWords(file.size);
    button.setAttribute("aria-label", `${button.dataset.remove} ${name}`);
    button.addEventListener("click", () => remove(chip));
    shown.set(chip, null);
    chips.append(chip);
    return chip;
  }

  /** @param {HTMLElement} chip @param {string} words */
  function say(chip, words) {
    const note = /** @type {HTMLElement} */ (chip.querySelector("[data-note]"));
    note.textContent = words;
    note.hidden = !words;
  }

  /** @param {HTMLElement} chip @param {string} sentence */
  function refuse(chip, sentence) {
    underway.delete(chip);
    // Without it the message may not be meant any more.
    wait.hidden = true;
    chip.classList.add("refused");
    chip.querySelector("progress")?.remove();
    say(chip, sentence);
    told.textContent = sentence;
    update();
  }

  /** @param {HTMLElement} chip @param {Kept} file */
  function keep(chip, file) {
    underway.delete(chip);
    shown.set(chip, file);
    chip.querySelector("progress")?.remove();
    /** @type {HTMLElement} */ (chip.querySelector("[data-name]")).textContent = visible(file.name);
    const field = /** @type {HTMLInputElement} */ (chip.querySelector("input"));
    field.value = file.id;
    field.disabled = false;
    say(chip, file.note ?? "");
    if (!file.mediaType.startsWith("image/")) return;
    const thumb = /** @type {HTMLImageElement} */ (chip.querySelector("img"));
    thumb.src = `/api/attachments/${file.id}`;
    thumb.hidden = false;
    chip.querySelector("svg")?.remove();
  }

  /** @param {HTMLElement} chip @param {File} file @param {string} url */
  function upload(chip, file, url) {
    const request = new XMLHttpRequest();
    const failed = () => refuse(chip, `${visible(file.name)} ${pick.dataset.failed}`);
    const body = new FormData();
    body.append("file", file, file.name);
    underway.set(chip, request);
    request.open("POST", url);
    request.responseType = "json";
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => {
      const bar = chip.querySelector("progress");
      if (!bar || !event.lengthComputable) return;
      // Sent, but not looked at yet: how long that takes, nobody knows.
      if (event.loaded === event.total) bar.removeAttribute("value");
      else bar.value = event.loaded / event.total;
    });
    request.addEventListener("error", failed);
    request.addEventListener("load", () => {
      if (!shown.has(chip)) return;
      if (request.status !== 201) return request.response?.detail ? refuse(chip, request.response.errors?.file ?? request.response.detail) : failed();
      keep(chip, request.response);
      told.textContent = `${visible(file.name)} ${pick.dataset.ready}`;
      update();
    });
    request.send(body);
  }

  /** @param {File} file */
  async function add(file) {
    const good = [...shown.keys()].filter((chip) => !chip.classList.contains("refused")).length;
    const chip = place(file);
    if (good >= Number(pick.dataset.mostFiles)) return refuse(chip, pick.dataset.tooMany ?? "");
    if (file.size > Number(pick.dataset.mostBytes)) return refuse(chip, `${visible(file.name)} ${pick.dataset.tooLarge}`);
    underway.set(chip, null);
    update();
    try {
      const url = await to.url();
      if (shown.has(chip)) upload(chip, file, url);
    } catch {
      refuse(chip, `${visible(file.name)} ${pick.dataset.failed}`);
    }
  }

  /** @param {Kept[]} files */
  function show(files) {
    for (const file of files) keep(place(file), file);
    update();
  }

  /** What was attached before the page was left, as far as the server still has it. */
  async function restore() {
    const stored = JSON.parse(sessionStorage.getItem(key) ?? "null");
    if (!stored) return;
    to.take(stored.conversation);
    show(stored.files);
    const answer = await fetch(await to.url());
    if (!answer.ok) return;
    const there = new Set((await answer.json()).map((/** @type {Kept} */ file) => file.id));
    for (const [chip, file] of [...shown]) {
      if (!file || there.has(file.id) || !stored.files.some((/** @type {Kept} */ each) => each.id === file.id)) continue;
      shown.set(chip, null);
      /** @type {HTMLInputElement} */ (chip.querySelector("input")).disabled = true;
      refuse(chip, `${visible(file.name)} ${pick.dataset.lost}`);
    }
  }

  form.querySelector("textarea")?.addEventListener("input", () => (wait.hidden = true));
  pick.addEventListener("change", () => {
    [...(pick.files ?? [])].forEach(add);
    pick.value = "";
  });
  takesInstead(form, (text) => void add(new File([text], "pasted.txt", { type: "text/plain" })));
  document.addEventListener("paste", (event) => {
    const given = event.clipboardData;
    // Spreadsheets and the like add a picture of the text that was copied.
    if (!given?.files.length || given.types.includes("text/html") || isElsewhere(event.target, form)) return;
    event.preventDefault();
    [...given.files].forEach(add);
  });
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      if (!holdsFiles(/** @type {DragEvent} */ (event).dataTransfer)) return;
      event.preventDefault();
      dropHere.hidden = false;
    });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) dropHere.hidden = true;
  });
  document.addEventListener("drop", (event) => {
    dropHere.hidden = true;
    if (!holdsFiles(event.dataTransfer)) return;
    event.preventDefault();
    [...(event.dataTransfer?.files ?? [])].forEach(add);
  });
  // Once whoever asked for this is there to be told.
  Promise.resolve().then(restore).catch(() => undefined);

  return {
    show,
    ids: () => kept().map((file) => file.id),
    isBusy: () => underway.size > 0,
    /** The message is to be sent: if files are on their way it waits for them, and says so. */
    holdsBack() {
      wait.hidden = underway.size === 0;
      if (underway.size) told.textContent = wait.textContent;
      return underway.size > 0;
    },
    /** They went with a message, and what was refused with them. @param {string[]} ids */
    leave(ids) {
      for (const [chip, file] of [...shown]) if (file ? ids.includes(file.id) : !underway.has(chip)) drop(chip);
    },
    forget: () => sessionStorage.removeItem(key),
  };
}
