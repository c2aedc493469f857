// @ts-check
/** Times come in UTC, by the filter `when`, and are read in the person's zone; the title holds the whole instant with its zone. */

/** @param {Date} moment @param {boolean} seconds */
function inWords(moment, seconds) {
  const now = new Date();
  /** @type {Intl.DateTimeFormatOptions} */
  const day = moment.toDateString() !== now.toDateString() ? { day: "numeric", month: "short" } : {};
  const year = moment.getFullYear() !== now.getFullYear() ? "numeric" : undefined;
  return moment.toLocaleString([], { ...day, year, hour: "numeric", minute: "2-digit", second: seconds ? "2-digit" : undefined });
}

function localTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const moment = new Date(element.getAttribute("datetime") ?? "");
    element.setAttribute("data-local", "");
    const whole = moment.toLocaleString([], { dateStyle: "long", timeStyle: "long" });
    element.setAttribute("title", whole);
    element.textContent = element.hasAttribute("data-whole") ? whole : inWords(moment, element.hasAttribute("data-seconds"));
  }
}

new MutationObserver(localTimes).observe(document.body, { childList: true, subtree: true });
localTimes();

// A field that asks for a zone begins with the browser's.
const zone = document.querySelector("select[data-browser-zone]");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone instanceof HTMLSelectElement && [...zone.options].some((option) => option.value === own)) zone.value = own;
