"""Spans of calls: the wait for an approval, and the execution of the tool. Made from the database once the call is
over, whichever process asked, answered and performed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from hitlchat.agent.models import Message
from hitlchat.base import tracing
from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.transition import call_moved

RAN: Final = frozenset({Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN})
LARGE: Final = ("arguments", "result", "output", "approval__disclosure", "approval__prompt")
AGENT: Final = "hitlchat"
EXPORT_SECONDS: Final = 5
_LOW: Final = 2**64 - 1

# The trace's and the span's id that the next root gets.
_root: ContextVar[UUID | None] = ContextVar("root", default=None)


class Ids(RandomIdGenerator):
    def generate_trace_id(self) -> int:
        root = _root.get()
        return super().generate_trace_id() if root is None else root.int

    def generate_span_id(self) -> int:
        root = _root.get()
        return super().generate_span_id() if root is None else root.int & _LOW


class Traces:
    """Exports spans of this process, in the background, until `end`."""

    def __init__(self) -> None:
        resource = Resource.create({SERVICE_NAME: settings.OTEL_SERVICE_NAME})
        # Its own, and not the global one: nobody knows which data the spans of libraries hold.
        self._provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
        url = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip('/')}/v1/traces"
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url, timeout=EXPORT_SECONDS)))
        self._tracer = self._provider.get_tracer(AGENT)
        tracing.install(self)
        call_moved.connect(self._on_move, dispatch_uid="traces")

    def end(self) -> None:
        """Send the spans that are left. Takes as long as their collector, up to the time limit."""
        call_moved.disconnect(dispatch_uid="traces")
        tracing.install(None)
        self._provider.shutdown()

    @contextmanager
    def work(self, run: UUID, conversation: UUID, *, begins: bool) -> Iterator[tracing.Span]:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": AGENT,
            "gen_ai.agent.name": AGENT,
            "gen_ai.conversation.id": str(conversation),
            "hitlchat.run.id": str(run),
        }
        with self._watched(self._started(f"invoke_agent {AGENT}", run, is_root=begins, attributes=attributes)) as span:
            yield span

    @contextmanager
    def ask(self, model: str, provider: str) -> Iterator[tracing.Span]:
        attributes: dict[str, str | bool] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": True,
        }
        started = self._tracer.start_span(f"chat {model}", kind=SpanKind.CLIENT, attributes=attributes)
        with self._watched(started) as span:
            yield span

    def _on_move(self, *, call_id: UUID, status: Status, **_: Any) -> None:
        """Export the spans of a call that is over; none while it goes on, or if it neither waited nor ran."""
        if status not in SETTLED:
            return
        call = ToolCall.objects.select_related("approval").defer(*LARGE).get(pk=call_id)
        run = Message.objects.filter(pk=call.turn_id).values_list("run_id", flat=True).first() if call.turn_id else None
        approval: Approval | None = getattr(call, "approval", None)
        if status in RAN and call.started_at and call.settled_at:
            self._export_execution(call, run)
        if approval is not None and call.settled_at:
            # The only span of a call that a program made and that did not run.
            self._export_wait(call, approval, run, is_root=run is None and status not in RAN)

    def _export_execution(self, call: ToolCall, run: UUID | None) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool_name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": str(call.pk),
            **_attributes(call),
        }
        has_failed = call.status != Status.SUCCEEDED
        if has_failed:
            attributes["error.type"] = str((call.error or {}).get("kind") or call.status)
        more = {"attributes": attributes, "start_time": _nanoseconds(call.started_at)}
        span = self._started(f"execute_tool {call.tool_name}", run or call.pk, is_root=run is None, **more)
        if has_failed:
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(call.settled_at))

    def _export_wait(self, call: ToolCall, approval: Approval, run: UUID | None, *, is_root: bool) -> None:
        answers = Decision.objects.filter(approval=approval, round=call.round).order_by("decided_at")
        end, means = answers.values_list("decided_at", "means").last() or (call.settled_at, "system")
        outcome = "approved" if call.status in RAN else call.status
        attributes = {"hitlchat.approval.id": str(approval.pk), "hitlchat.outcome": outcome, "hitlchat.means": means}
        more = {"attributes": attributes | _attributes(call), "start_time": _nanoseconds(approval.created_at)}
        span = self._started("wait_for_approval", run or call.pk, is_root=is_root, **more)
        span.end(max(_nanoseconds(end), _nanoseconds(approval.created_at)))

    def _started(self, name: str, root: UUID, *, is_root: bool, **more: Any) -> trace.Span:
        """Start a span in the trace of this name: as its first one, or below that."""
        token = _root.set(root if is_root else None)
        try:
            return self._tracer.start_span(name, context=Context() if is_root else within(root), **more)
        finally:
            _root.reset(token)

    @contextmanager
    def _watched(self, started: trace.Span) -> Iterator[tracing.Span]:
        """Make the span the current one. Only the kind of an error is exported: messages may hold data."""
        span = tracing.Span()
        try:
            with trace.use_span(started, record_exception=False, set_status_on_exception=False):
                yield span
        except Exception as error:
            started.set_status(StatusCode.ERROR)
            started.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            started.set_attributes(span.attributes)
            started.end()


def within(root: UUID) -> Context:
    """Return the context below the first span of this trace, whichever process made that."""
    parent = SpanContext(root.int, root.int & _LOW, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(parent), Context())


def _attributes(call: ToolCall) -> dict[str, Any]:
    where = {"gen_ai.conversation.id": str(call.conversation_id)} if call.conversation_id else {}
    return {
        **where,
        "hitlchat.call.id": str(call.pk),
        "hitlchat.source": call.source,
        "hitlchat.risk": call.risk_level,
        "hitlchat.caller": call.caller_kind,
    }


def _nanoseconds(at: Any) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
