// @ts-check
/** Connections of which nothing comes back any more end: a websocket by a heartbeat of the page's own, as if it was closed; a fetch after a while. */

const BEAT_MS = 15_000;
/** After a sign that something has changed, and after something was sent, an answer is expected sooner. */
const ANSWER_MS = 8000;
const SOON_MS = 4000;
/** A connection that ends sooner than this after it opened has failed. */
const STAYS_MS = 5000;
const MOST_FAILURES = 2;
/** Closed by the server with a reason that the page knows, or since the server restarts: no failure. */
const EXPECTED = [1000, 1001, 1012, 4401, 4403, 4404];
/** What the page is told instead of the code with which connections fail: no other one is made. */
export const GIVEN_UP = 4900;

const FETCH_MS = 10_000;

/** For each fetch of something short: without an end it holds one of the few connections that a browser makes to a server, for minutes. */
export const inTime = () => AbortSignal.timeout(FETCH_MS);

/** How connections to each address ended last, right after they opened. @type {Map<string, {code: number, times: number}>} */
const failures = new Map();
/** Connections that are open. @type {Set<BeatingSocket>} */
const open = new Set();

/** Like a WebSocket. Tells “unsure” with the messages of which nobody knows whether they arrived. */
export class BeatingSocket extends EventTarget {
  OPEN = WebSocket.OPEN;
  /** @type {((event: Event) => void) | null} */ onopen = null;
  /** @type {((event: Event) => void) | null} */ onclose = null;
  /** @type {((event: Event) => void) | null} */ onerror = null;
  /** Messages that were sent, until an answer to a later beat shows that they arrived. @type {string[]} */
  #sent = [];
  /** How many of them were sent before each beat that is not answered. @type {number[]} */
  #beats = [];
  #over = false;
  #openedAt = 0;
  #timer = 0;
  #interval = 0;
  #url;
  #inner;

  /** @param {string | URL} url */
  constructor(url) {
    super();
    this.#url = String(url);
    this.#inner = new WebSocket(url);
    this.#expect(ANSWER_MS);
    this.#inner.addEventListener("open", () => this.#opened());
    this.#inner.addEventListener("message", (event) => this.#heard(event.data));
    this.#inner.addEventListener("error", () => this.#over || this.#tell(new Event("error")));
    this.#inner.addEventListener("close", (event) => this.#end(event.code));
  }

  get readyState() {
    return this.#over ? WebSocket.CLOSED : this.#inner.readyState;
  }

  /** @param {string} message */
  send(message) {
    this.#inner.send(message);
    this.#sent.push(message);
    this.beat(SOON_MS);
  }

  close() {
    this.#inner.close();
  }

  /** Ask whether anybody is there. @param {number} patience */
  beat(patience = ANSWER_MS) {
    if (this.readyState !== WebSocket.OPEN) return;
    this.#inner.send("ping");
    this.#beats.push(this.#sent.length);
    if (!this.#timer) this.#expect(patience);
  }

  /** @param {number} patience */
  #expect(patience) {
    this.#timer = window.setTimeout(() => this.#end(1006), patience);
  }

  #opened() {
    if (this.#over) return this.#inner.close();
    this.#settle();
    this.#openedAt = performance.now();
    this.#interval = window.setInterval(() => this.#beats.length || this.beat(), BEAT_MS);
    open.add(this);
    this.#tell(new Event("open"));
  }

  /** @param {string} data */
  #heard(data) {
    if (this.#over) return;
    this.#settle();
    if (data === "pong") {
      const arrived = this.#beats.shift() ?? 0;
      this.#sent.splice(0, arrived);
      this.#beats = this.#beats.map((count) => count - arrived);
    }
    if (this.#beats.length) this.#expect(ANSWER_MS);
    if (data !== "pong") this.#tell(new MessageEvent("message", { data }));
  }

  #settle() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  /** @param {number} code */
  #end(code) {
    if (this.#over) return;
    this.#over = true;
    this.#settle();
    clearInterval(this.#interval);
    open.delete(this);
    // Its own end may take minutes, when nobody answers. One that is only coming up is closed once it has come.
    if (this.#inner.readyState === WebSocket.OPEN) this.#inner.close();
    if (this.#sent.length) this.#tell(new CustomEvent("unsure", { detail: this.#sent }));
    this.#tell(new CloseEvent("close", { code: this.#fails(code) ? GIVEN_UP : code }));
  }

  /** Has it failed in one way as often as may be? @param {number} code */
  #fails(code) {
    if (!this.#openedAt) return false;
    const early = performance.now() - this.#openedAt < STAYS_MS && !EXPECTED.includes(code);
    const last = failures.get(this.#url);
    const times = early ? (last?.code === code ? last.times : 0) + 1 : 0;
    failures.set(this.#url, { code, times });
    return times >= MOST_FAILURES;
  }

  /** @param {Event} event */
  #tell(event) {
    const own = { open: this.onopen, close: this.onclose, error: this.onerror }[event.type];
    own?.call(this, event);
    this.dispatchEvent(event);
  }
}

/** What was asleep, or has another network, may have lost its connections without a word. */
function look() {
  if (!document.hidden) for (const socket of open) socket.beat(SOON_MS);
}

for (const kind of ["online", "focus"]) window.addEventListener(kind, look);
document.addEventListener("visibilitychange", look);
