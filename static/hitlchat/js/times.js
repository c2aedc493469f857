// @ts-check
/** Times are stored in the server's zone and read in the person's: the time alone where it is of today, and nothing else is wanted. */

/** @param {Date} moment @param {boolean} dated @param {boolean} seconds */
function inWords(moment, dated, seconds) {
  /** @type {Intl.DateTimeFormatOptions} */
  const time = { hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }) };
  const ofToday = !dated && moment.toDateString() === new Date().toDateString();
  return ofToday ? moment.toLocaleTimeString([], time) : moment.toLocaleString([], { day: "numeric", month: "short", year: "numeric", ...time });
}

function localTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const moment = new Date(element.getAttribute("datetime") ?? "");
    element.setAttribute("data-local", "");
    element.setAttribute("title", moment.toLocaleString([], { dateStyle: "long", timeStyle: "long" }));
    element.textContent = inWords(moment, element.hasAttribute("data-dated"), element.hasAttribute("data-seconds"));
  }
}

new MutationObserver(localTimes).observe(document.body, { childList: true, subtree: true });
localTimes();
