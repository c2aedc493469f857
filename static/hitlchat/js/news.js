// @ts-check
/** What every page hears of the inbox: how many calls wait, which came, which are gone. Told as “inbox-news” on the body. */

/**
 * @typedef {{id: string, tool: string}} Came
 * @typedef {{waiting: string, came: Came[], gone: string[]}} News
 */

import { BeatingSocket, GIVEN_UP, inTime } from "./heartbeat.js";

const PATH = "/ws/inbox";
const SIGNED_OUT = 4401;
/** Events may be lost, and what time alone brings about has none. */
const LOOK_MS = 15_000;
const LONGEST_WAIT_MS = 8000;

/** @type {BeatingSocket | null} */
let socket = null;
let tries = 0;
let timer = 0;
let countUrl = "";

/** @param {News} news */
function tell(news) {
  document.body.dispatchEvent(new CustomEvent("inbox-news", { detail: news }));
}

function connect() {
  const address = new URL(PATH, window.location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const own = new BeatingSocket(address);
  socket = own;
  own.addEventListener("open", () => {
    tries = 0;
  });
  own.addEventListener("message", (event) => tell(JSON.parse(/** @type {MessageEvent} */ (event).data)));
  own.addEventListener("close", (event) => {
    const { code } = /** @type {CloseEvent} */ (event);
    if (code === SIGNED_OUT) return end();
    // From here on it looks now and then, without a socket.
    if (code === GIVEN_UP) return;
    const wait = Math.min(500 * 2 ** tries++, LONGEST_WAIT_MS) * (0.75 + Math.random() / 2);
    setTimeout(() => timer && connect(), wait);
  });
}

/** Nobody is signed in any more. */
function end() {
  clearInterval(timer);
  timer = 0;
  document.body.dispatchEvent(new Event("inbox-signed-out"));
}

/** Now, by the socket if there is one. */
export async function look() {
  if (socket?.readyState === WebSocket.OPEN) return socket.send("look");
  try {
    const answer = await fetch(countUrl, { headers: { Accept: "text/plain" }, signal: inTime() });
    if (answer.status === 200) tell({ waiting: await answer.text(), came: [], gone: [] });
    if (answer.status === 204) end();
  } catch {
    // The server is away, or this connection: the next look may find it.
  }
}

/** @param {string} url Where the count is without a socket. */
export function listen(url) {
  countUrl = url;
  timer = setInterval(look, LOOK_MS);
  connect();
  document.addEventListener("visibilitychange", () => document.hidden || look());
}
