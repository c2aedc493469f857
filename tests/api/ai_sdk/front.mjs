// A front end that is led over standard input: one command a line, one answer a line, both JSON.
//
//   node front.mjs '{"base": …, "cookie": …, "token": …, "example": …}'
import { createInterface } from "node:readline";
import { readFileSync, writeFileSync } from "node:fs";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
  validateUIMessages,
} from "ai";
import { Window } from "happy-dom";

const { base, cookie, token, example } = JSON.parse(process.argv[2]);
const fetched = globalThis.fetch;
let open = null;

// As a browser does: addresses of the page, its cookies and its origin.
globalThis.fetch = (url, options = {}) => {
  const own = token ? { authorization: `Bearer ${token}` } : { cookie, origin: base };
  return fetched(new URL(url, base), { ...options, headers: { ...options.headers, ...own } });
};
const csrf = /csrftoken=([^;]+)/.exec(cookie)?.[1] ?? "";
const headers = { "X-CSRFToken": csrf };
const chats = new Map();

async function begin({ chat: id, messages }) {
  const { Chat } = await import("@ai-sdk/react");
  const finished = [];
  const chat = new Chat({
    id,
    messages,
    transport: new DefaultChatTransport({ headers }),
    sendAutomaticallyWhen: (now) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(now) || lastAssistantMessageIsCompleteWithToolCalls(now),
    onFinish: ({ finishReason }) => finished.push(finishReason ?? null),
  });
  chats.set(id, { chat, finished });
}

function state({ chat: id }) {
  const { chat, finished } = chats.get(id);
  return { status: chat.status, error: chat.error?.message ?? null, messages: chat.messages, finished };
}

// The example of the documentation, rendered.
async function render({ chat: id }) {
  const window = new Window({ url: base });
  Object.assign(globalThis, { window, document: window.document });
  document.cookie = `csrftoken=${csrf}`;
  const { transform } = await import("sucrase");
  const { code } = transform(readFileSync(example, "utf8"), { transforms: ["jsx"], jsxRuntime: "automatic", production: true });
  const made = example.replace(/\.jsx$/, ".mjs");
  writeFileSync(made, code);
  const { Conversation } = await import(made);
  const { createRoot } = await import("react-dom/client");
  const { createElement } = await import("react");
  const stored = await (await fetch(`/api/chat/${id}`)).json();
  document.body.innerHTML = "<main></main>";
  open = createRoot(document.querySelector("main"));
  open.render(createElement(Conversation, { id, messages: stored.messages }));
}

const commands = {
  begin,
  state,
  render,
  // Whatever goes wrong is in the state of the chat.
  send: ({ chat: id, text, messageId }) => void chats.get(id).chat.sendMessage({ text, messageId }),
  again: ({ chat: id, messageId }) => void chats.get(id).chat.regenerate({ messageId }),
  answer: ({ chat: id, ...given }) => void chats.get(id).chat.addToolApprovalResponse(given),
  output: ({ chat: id, ...given }) => void chats.get(id).chat.addToolOutput(given),
  resend: ({ chat: id }) => void chats.get(id).chat.sendMessage(),
  resume: ({ chat: id }) => void chats.get(id).chat.resumeStream(),
  // The same until that stream has ended: an answer that is given meanwhile may be lost to what it brings.
  resumed: async ({ chat: id }) => void (await chats.get(id).chat.resumeStream()),
  leave: ({ chat: id }) => chats.get(id).chat.stop(),
  // The stream of the run as `readUIMessageStream` makes a message of it.
  async read({ chat: id }) {
    const stream = await new DefaultChatTransport({ headers }).reconnectToStream({ chatId: id });
    let last = null;
    if (stream) for await (const message of readUIMessageStream({ stream })) last = message;
    return last;
  },
  // Fails if they are not what the SDK takes for its messages.
  validate: async ({ messages }) => (await validateUIMessages({ messages })).length,
  page: () => ({ text: document.body.textContent, buttons: [...document.querySelectorAll("button:not([disabled])")].map((each) => each.textContent) }),
  // Whether there was such a button: what is being read may have it wait.
  press({ label }) {
    const found = [...document.querySelectorAll("button:not([disabled])")].find((each) => each.textContent === label);
    found?.click();
    return Boolean(found);
  },
  async say({ text }) {
    document.querySelector("input").value = text;
    document.querySelector("form").requestSubmit();
  },
  close: () => open?.unmount(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await commands[name](given)) ?? null };
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
