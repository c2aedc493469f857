"""Delivery of notices by one server process: as a mail or as a signed POST, and what follows from how that went."""

import asyncio
import base64
import hmac
import logging
import random
import secrets
import smtplib
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import httpx2
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import database
from hitlchat.base.background import Worker, me
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import see
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.transition import note
from hitlchat.notices import composing
from hitlchat.notices.composing import Audience, Reading, mail_is_off
from hitlchat.notices.models import URL, Kind, Notice, NoticeKind, Receiver, State, keys_of
from hitlchat.outbound import guard
from hitlchat.secrets.masking import Mask
from hitlchat.secrets.sealing import Unsealable, unseal

LOOK_SECONDS: Final = 2.0
MOST_AT_ONCE: Final = 100
TIDY_EVERY: Final = 1800
# To one place at the same time; all mail is one place.
MOST_PER_PLACE: Final = 2
MAIL: Final = "e-mail"
# A mail takes several exchanges with its server, each of which may take its time-out.
MAIL_EXCHANGES: Final = 10
MAIL_OFF: Final = "E-mail is off: EMAIL_HOST is not set for this server."
# Between attempts.
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(hours=6)
GROWTH: Final = 4
JITTER: Final = 0.2
GIVEN_UP_AFTER: Final = timedelta(hours=24)
GONE: Final = gettext_noop("The receiver answered 410 Gone: it wants no more notices.")
# Of keys that webhooks are signed with; the specification asks for 24 to 64 bytes.
PREFIX: Final = "whsec_"
# Of what webhooks answer.
MOST_BYTES: Final = 16 * 1024
LONGEST_ANSWER: Final = 200

logger = logging.getLogger(__name__)

# A mail server that hangs holds these and nothing else.
_MAILING_THREADS = ThreadPoolExecutor(2, thread_name_prefix="notice-mail")
# Those that work in this process.
_workers: set["DeliveryWorker"] = set()


@dataclass(frozen=True)
class Result:
    """`trouble`: why it was not delivered, if so. `final`: to try again is no use. `gone`: no more is wanted."""

    trouble: str = ""
    status: int | None = None
    final: bool = False
    gone: bool = False
    answer: str = ""


class DeliveryWorker:
    """Delivers the notices of one loop. Each delivery is a task of its own, so that none waits for another."""

    def __init__(self) -> None:
        self.worker = Worker("notices", self._take_turn, LOOK_SECONDS)
        self._looks = 0
        self._under_way: dict[asyncio.Task[None], Notice] = {}

    async def work(self) -> None:
        """Work until cancelled; what is under way is then left to the next process."""
        _workers.add(self)
        try:
            await self.worker.work()
        finally:
            _workers.discard(self)
            for task in self._under_way:
                task.cancel()

    async def _take_turn(self) -> None:
        looks, self._looks = self._looks, self._looks + 1
        await self.look(tidy=looks % TIDY_EVERY == 0)

    async def look(self, *, tidy: bool = False) -> None:
        """Take in what happened, make the notices whose time has come, and begin to send what is due."""
        audience = await in_db(Audience)()
        reading = Reading(audience)
        while await in_db(reading.go_on)():
            # A batch at a time: others need the thread of the database too.
            continue
        await in_db(composing.compose)(audience)
        if tidy:
            await in_db(composing.tidy)()
        busy = Counter(place_of(notice.receiver) for notice in self._under_way.values())
        for notice in await in_db(claim)(MOST_AT_ONCE - len(self._under_way), busy):
            task = asyncio.create_task(self._deliver(notice))
            self._under_way[task] = notice
            task.add_done_callback(self._over)

    async def settled(self) -> None:
        while self._under_way:
            await asyncio.wait(list(self._under_way))

    def _over(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self.worker.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its lease runs out, and it is sent again.
            logger.error("A notice could not be sent", exc_info=error)

    async def _deliver(self, notice: Notice) -> None:
        begun = timezone.now()
        try:
            result = await (mail if notice.receiver.is_mail else post)(notice)
        except asyncio.CancelledError:
            await asyncio.shield(in_db(release)(notice))
            raise
        await in_db(settle)(notice, result, begun)


async def deliver() -> None:
    """Deliver notices for this process; ends only by being cancelled."""
    await DeliveryWorker().work()


def wake() -> None:
    """Wake the workers of this process, from any thread: somebody waits for a notice."""
    for each in tuple(_workers):
        each.worker.wake()


def place_of(receiver: Receiver) -> str:
    return MAIL if receiver.is_mail else receiver.place


def claim(most: int, busy: Mapping[str, int]) -> list[Notice]:
    """Claim at most so many due notices for this process, for no place more than it may have with `busy`."""
    places, full = Counter(busy), [place for place, count in busy.items() if count >= MOST_PER_PLACE]
    now = database.now()
    longest = max(lease(is_mail=True), lease(is_mail=False))
    # Further ahead than any can be: the clock was set back since.
    free = Q(lease_until=None) | Q(lease_until__lt=now) | Q(lease_until__gt=now + longest)
    rows = Notice.objects.filter(free, state=State.DUE, next_try_at__lte=now).exclude(receiver__place__in=full)
    if MAIL in full:
        rows = rows.exclude(receiver__kind=Kind.EMAIL)
    found: list[Notice] = []
    for notice in rows.select_related("receiver__person").order_by("next_try_at", "pk")[: 2 * most]:
        receiver, place = notice.receiver, place_of(notice.receiver)
        if receiver.person is not None and not receiver.person.is_active:
            # Deactivated since the notice was made.
            drop(receiver.pk)
        elif len(found) < most and places[place] < MOST_PER_PLACE:
            row = Notice.objects.filter(free, pk=notice.pk, state=State.DUE)
            if row.update(owner=me(), lease_until=now + lease(is_mail=receiver.is_mail)) == 1:
                places[place] += 1
                found.append(notice)
    return found


def lease(*, is_mail: bool) -> timedelta:
    """Return how long others leave a notice to the process that has it: longer than an attempt takes."""
    longest = MAIL_EXCHANGES * settings.EMAIL_TIMEOUT if is_mail else settings.NOTICE_TIMEOUT_SECONDS
    return timedelta(seconds=longest + settings.LEASE_SECONDS)


def release(notice: Notice) -> None:
    """Release a notice when this process ends before it knows how its delivery went; the next process sends it."""
    Notice.objects.filter(pk=notice.pk, owner=me(), state=State.DUE).update(lease_until=None, owner="")


def settle(notice: Notice, result: Result, begun: datetime) -> None:
    """Note how a delivery went, unless another process has it by now."""
    now = database.now()
    # Who presses “Test” looks at what comes back, and presses again.
    is_last = result.final or notice.kind == NoticeKind.TEST or now - notice.made_at >= GIVEN_UP_AFTER
    state = State.SENT if not result.trouble else State.GIVEN_UP if is_last else State.DUE
    columns: dict[str, object] = {
        "state": state,
        "tries": notice.tries + 1,
        "tried_at": begun,
        "took_ms": max(0, round((now - begun).total_seconds() * 1000)),
        "status": result.status,
        "trouble": result.trouble[:300],
        "answer": result.answer[:300],
        "lease_until": None,
        "owner": "",
    }
    if state == State.DUE:
        # Longer each time, and never the same for all.
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * GROWTH ** min(notice.tries, 20))
        columns["next_try_at"] = now + pause * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
    else:
        columns["done_at"] = now
    receiver = Receiver.objects.filter(pk=notice.receiver_id, enabled=True)
    with transaction.atomic():
        counts = Notice.objects.filter(pk=notice.pk, owner=me(), state=State.DUE).update(**columns) == 1
        if counts and result.gone and receiver.update(enabled=False, off_why=GONE):
            drop(notice.receiver_id)
            data = {"receiver": str(notice.receiver_id), "reason": GONE}
            note(None, "notice.webhook_gone", actor=SYSTEM, data=data)
    logger.info("notice.%s %s", state.value, notice.pk)


def drop(receiver_id: UUID) -> None:
    rows = Notice.objects.filter(receiver_id=receiver_id, state=State.DUE)
    rows.update(state=State.DROPPED, done_at=database.now(), lease_until=None, owner="")


async def mail(notice: Notice) -> Result:
    if mail_is_off():
        return Result(MAIL_OFF)
    message = message_to(notice.receiver.place, notice.subject, notice.body, notice.message_id)
    return await asyncio.get_running_loop().run_in_executor(_MAILING_THREADS, partial(sent, message))


def message_to(address: str, subject: str, body: str, message_id: str) -> EmailMessage:
    """Return a mail to one address, which tells mail servers and programs that no person wrote it."""
    headers = {"Message-ID": f"<{message_id}@hitlchat>", "Auto-Submitted": "auto-generated"}
    return EmailMessage(f"hitlchat: {' '.join(subject.split())}"[:200], body, to=[address], headers=headers)


def sent(message: EmailMessage) -> Result:
    """Send a mail, and return how that went, without the mail server's own words: they may tell of its insides."""
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as refused:
        codes = [code for code, _ in refused.recipients.values()]
        return Result(gettext_noop("The mail server refused the address."), final=all(code >= 500 for code in codes))
    except ValueError:
        return Result(gettext_noop("The address or subject is not valid in an e-mail."), final=True)
    except smtplib.SMTPAuthenticationError:
        return Result(gettext_noop("The mail server refused hitlchat's user name and password."))
    except smtplib.SMTPResponseException as error:
        return Result(translatable(f"The mail server did not accept the e-mail (code {error.smtp_code})."))
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("A notice could not be mailed: %s", type(error).__name__)
        return Result(gettext_noop("The mail server could not be reached or did not answer in time."))
    return Result()


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def signature_headers(message_id: str, at: datetime, body: bytes, keys: Iterable[str]) -> dict[str, str]:
    """Return the headers of an attempt `at` this time, with a signature for each key that counts."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    digests = [hmac.digest(base64.b64decode(key.removeprefix(PREFIX)), signed, "sha256") for key in keys]
    signature = " ".join(f"v1,{base64.b64encode(digest).decode('ascii')}" for digest in digests)
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signature}


async def post(notice: Notice) -> Result:
    receiver = notice.receiver
    try:
        url, keys = unseal(receiver.url, URL), keys_of(receiver)
    except Unsealable as error:
        return Result(str(error), final=True)
    parts = urlsplit(url)
    words = [word for word in (*parts.path.split("/"), parts.query, parts.path) if len(word) > 5]
    mask = Mask([url, *words, *keys])
    try:
        async with asyncio.timeout(settings.NOTICE_TIMEOUT_SECONDS):
            return await _exchange(notice, url, keys, mask)
    except TimeoutError:
        return Result(translatable(f"No complete response within {settings.NOTICE_TIMEOUT_SECONDS} seconds."))
    except guard.NotReachable as error:
        return Result(f"{error}.")
    except httpx2.ConnectError as error:
        return Result(mask.text(f"The receiver could not be reached: {error}.")[:300])
    except (httpx2.TimeoutException, httpx2.NetworkError):
        return Result(gettext_noop("The connection broke."))
    except httpx2.InvalidURL:
        return Result(gettext_noop("The address is not valid."), final=True)
    except (httpx2.ProtocolError, httpx2.UnsupportedProtocol):
        return Result(gettext_noop("The receiver does not speak HTTP."))


async def _exchange(notice: Notice, url: str, keys: Iterable[str], mask: Mask) -> Result:
    body = notice.body.encode()
    headers = {
        **signature_headers(notice.message_id, timezone.now(), body, keys),
        "Content-Type": "application/json",
        "User-Agent": "hitlchat",
        "Accept-Encoding": "identity",
    }
    request = httpx2.Request("POST", url, headers=headers, content=body)
    allow_private = notice.receiver.allow_private and settings.NOTICE_ALLOW_PRIVATE
    refused = partial(guard.refusal, allow_private=allow_private)
    async with guard.answered(request, guard.Transport(refused, purpose="notice")) as response:
        # For who looks at a test; of other answers only the status counts.
        content = await guard.beginning(response, MOST_BYTES) if notice.kind == NoticeKind.TEST else b""
    text = content[:MOST_BYTES].decode("utf-8", "replace").strip()
    status, answer = response.status_code, see(mask.text(text)).plain[:LONGEST_ANSWER]
    if 200 <= status < 300:
        return Result(status=status, answer=answer)
    if 300 <= status < 400:
        redirected = gettext_noop("The receiver answered with a redirect, which is not followed.")
        return Result(redirected, status, answer=answer)
    if status == 410:
        return Result(GONE, status, final=True, gone=True, answer=answer)
    return Result(f"The receiver answered {status}.", status, answer=answer)
