"""An open page of a conversation as the real ASGI application serves it: frames in, fragments out."""

import json
from typing import Any, Final
from uuid import UUID

from channels.testing import WebsocketCommunicator
from django.test import Client

from hitlchat.asgi import application
from hitlchat.chat.consumers import CLOSE_DEACTIVATED
from tests.waiting import SECONDS

ORIGIN: Final = b"http://127.0.0.1:8000"

Cookie = str


def cookie_of(client: Client) -> Cookie:
    return f"sessionid={client.cookies['sessionid'].value}"


class Tab:
    def __init__(self, conversation: UUID, cookie: Cookie = "", origin: bytes | None = ORIGIN) -> None:
        headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode())]
        headers += [(b"origin", origin)] if origin is not None else []
        self.socket = WebsocketCommunicator(application, f"/ws/conversations/{conversation}", headers)
        self.seen: list[str] = []

    async def open(self) -> "Tab":
        accepted, _ = await self.socket.connect(timeout=SECONDS)
        assert accepted
        return self

    async def send(self, **frame: Any) -> None:
        await self.socket.send_to(text_data=json.dumps(frame))

    async def send_raw(self, frame: str | bytes) -> None:
        given = {"text_data": frame} if isinstance(frame, str) else {"bytes_data": frame}
        await self.socket.send_to(**given)

    async def next(self) -> str:
        self.seen.append(await self.socket.receive_from(timeout=SECONDS))
        return self.seen[-1]

    async def until(self, words: str) -> str:
        """Read on until a fragment holds `words`; that one."""
        while words not in await self.next():
            pass
        return self.seen[-1]

    async def until_powerless(self) -> None:
        """Read on until it says that its person or conversation is gone, or is closed since they were deactivated."""
        while (output := await self.socket.receive_output(timeout=SECONDS))["type"] == "websocket.send":
            if "You are signed out." in output["text"] or "This conversation was deleted." in output["text"]:
                return
        assert (output["type"], output["code"]) == ("websocket.close", CLOSE_DEACTIVATED), output

    async def until_no_card(self) -> None:
        """Read on until nothing waits for an answer any more."""
        while "data-approve" in await self.until('id="asks"'):
            pass

    async def close_code(self) -> int:
        """What the server closed the connection with."""
        output = await self.socket.receive_output(timeout=SECONDS)
        assert output["type"] == "websocket.close", output
        return int(output["code"])

    async def close(self) -> None:
        # A wait of the communicator that was in vain has ended the application already.
        if not self.socket.future.cancelled():
            await self.socket.disconnect(timeout=SECONDS)
