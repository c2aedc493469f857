// @ts-check
/** Text that is put together from several keys, as Japanese or Chinese is: until it is whole, no key means anything else. */

import { isWriting } from "./menu.js";

/** The code of a key that belongs to a composition. Safari ends that first, and then sends the Enter that ended it. */
const COMPOSES = 229;

document.addEventListener(
  "keydown",
  (event) => {
    if (!isWriting(event.target) || !(event.isComposing || event.keyCode === COMPOSES)) return;
    event.stopImmediatePropagation();
    // In a field of one line it would send the form.
    if (event.key === "Enter" && event.target instanceof HTMLInputElement) event.preventDefault();
  },
  true,
);
