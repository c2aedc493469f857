"""A conversation as a test leads it: in this process, on the real database, as its owner."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from hitlchat.agent import runner, writing
from hitlchat.agent.models import ACTIVE, Conversation, Message, Role, Run, RunStatus
from hitlchat.base.database import in_db
from hitlchat.chat import fragments, layout, transcript_view
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.waiting import soon, stored

in_database = in_db


@dataclass(frozen=True)
class Talk:
    conversation: Conversation
    owner: User

    async def another(self) -> "Talk":
        """A new conversation of the same person."""
        return Talk(await Conversation.objects.acreate(owner=self.owner), self.owner)

    def page(self) -> str:
        """What its page is sent when it connects."""
        messages, earlier = transcript_view.messages(self.conversation.pk)
        viewer = signed_in(self.owner)
        return fragments.everything(self.conversation.pk, viewer, layout.lay_out(messages), earlier)

    async def say(self, content: str = "Do it.") -> Run:
        _, run_id = await in_database(runner.say)(self.conversation, content)
        return await Run.objects.aget(pk=run_id)

    async def run(self) -> Run:
        """The last run, as it is now."""
        return await self.conversation.runs.order_by("-created_at").afirst()  # type: ignore[return-value]

    async def over(self) -> Run:
        """The last run, once it is over."""
        await stored(lambda: not self.conversation.runs.filter(status__in=ACTIVE).exists(), "the run is over")
        return await self.run()

    async def ask(self, content: str = "Do it.") -> Run:
        """Say something and wait for the end of its run."""
        await self.say(content)
        return await self.over()

    async def asked(self, count: int = 1) -> list[Approval]:
        """The approvals that wait, in the order of asking, once there are `count` and the run is parked."""
        rows = Approval.objects.filter(call__conversation_id=self.conversation.pk, call__status=Status.WAITING)
        ordered = rows.select_related("call").order_by("call__created_at", "call__position")
        parked = self.conversation.runs.filter(parked=True, status=RunStatus.WAITING)
        await stored(lambda: parked.exists() and rows.count() == count, f"{count} calls wait")
        return await in_database(list)(ordered)

    async def only(self) -> Approval:
        """The one approval that waits."""
        (approval,) = await self.asked()
        return approval

    async def approve(self, approval: Approval, **more: Any) -> None:
        await in_database(decide.approve)(approval.pk, signed_in(self.owner), **more)

    async def decline(self, approval: Approval, reason: str = "") -> None:
        await in_database(decide.decline)(approval.pk, signed_in(self.owner), reason=reason)

    async def stop(self) -> bool:
        run = await self.run()
        return await in_database(runner.stop)(run.pk, self.conversation.pk, signed_in(self.owner))

    async def calls(self) -> list[ToolCall]:
        return await in_database(list)(ToolCall.objects.filter(conversation_id=self.conversation.pk))

    async def outcomes(self) -> list[str]:
        return [call.status for call in await self.calls()]

    async def settled(self, status: Status, count: int = 1) -> None:
        """Wait until so many calls have this status."""
        rows = ToolCall.objects.filter(conversation_id=self.conversation.pk, status=status)
        await stored(lambda: rows.count() == count, f"{count} calls are {status}")

    async def messages(self, role: Role) -> list[Message]:
        return await in_database(list)(self.conversation.messages.filter(role=role))

    async def answers(self) -> list[str]:
        return [message.content for message in await self.messages(Role.ASSISTANT)]

    async def notices(self) -> list[str]:
        return [message.content for message in await self.messages(Role.NOTICE)]

    async def text_arrived(self, text: str) -> None:
        """Wait until this process has the beginning of the answer that is being written."""
        run = await self.run()
        await soon(lambda: (written := writing.so_far(run.pk)) and written.text == text, f"{text!r} has arrived")
