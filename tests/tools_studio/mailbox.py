"""A mail server on the loopback that keeps what it is given, and can be made to misbehave."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """`answers` replaces the answer to a command; an empty one stays silent for good. `.`: hangs up on the message."""

    port: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    recipients: list[list[str]] = field(default_factory=list)
    messages: list[EmailMessage] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def listening() -> Iterator[Mailbox]:
    mailbox = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            _converse(self, mailbox)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        mailbox.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        try:
            yield mailbox
        finally:
            mailbox.over.set()
            server.shutdown()
            thread.join(40)


def _converse(connection: socketserver.StreamRequestHandler, mailbox: Mailbox) -> None:
    def say(line: str) -> None:
        connection.wfile.write(f"{line}\r\n".encode())

    say("220 ready")
    recipients: list[str] = []
    for line in connection.rfile:
        command = line.decode().strip()
        verb = command[:4].upper()
        answer = mailbox.answers.get(verb, "354 go on" if verb == "DATA" else "250 ok")
        if not answer:
            mailbox.over.wait(40)
            return
        say(answer)
        if verb == "RCPT":
            recipients.append(command.partition("<")[2].rstrip(">"))
        elif verb == "DATA" and answer.startswith("354"):
            message = _message(connection)
            if "." in mailbox.answers:
                return
            mailbox.messages.append(message)
            mailbox.recipients.append(recipients)
            recipients = []
            say("250 kept")
        elif verb == "QUIT":
            return


def _message(connection: socketserver.StreamRequestHandler) -> EmailMessage:
    lines = []
    for line in connection.rfile:
        if line == b".\r\n":
            break
        lines.append(line.removeprefix(b"."))
    message = message_from_bytes(b"".join(lines), policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message
