"""Traces by OTLP over HTTP. Imported only where an endpoint is set.

Names and attributes are those of the GenAI semantic conventions (opentelemetry.io/docs/specs/semconv/gen-ai/). Ids of
traces are ours: of a run, that of all that belongs to it; of a program's call, that of the call. So a run that waits
for days and goes on in another process is one trace, and nothing has to be handed over.
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
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from hitlchat.base import tracing
from hitlchat.gate.transition import call_moved
from hitlchat.telemetry import call_spans

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
        # Its own, and not the global one: of libraries nobody knows what their spans hold.
        self._provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
        url = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip('/')}/v1/traces"
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url, timeout=EXPORT_SECONDS)))
        self._tracer = self._provider.get_tracer(AGENT)
        tracing.install(self)
        call_moved.connect(self._on_move, dispatch_uid="traces")

    def end(self) -> None:
        """Send what is left. Takes as long as whoever collects it, up to its time limit."""
        call_moved.disconnect(dispatch_uid="traces")
        tracing.install(None)
        self._provider.shutdown()

    @contextmanager
    def work(self, run: UUID, conversation: UUID, *, begins: bool) -> Iterator[tracing.Span]:
        said = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": AGENT,
            "gen_ai.agent.name": AGENT,
            "gen_ai.conversation.id": str(conversation),
            "hitlchat.run.id": str(run),
        }
        with self._watched(self._started(f"invoke_agent {AGENT}", run, is_root=begins, attributes=said)) as span:
            yield span

    @contextmanager
    def ask(self, model: str, provider: str) -> Iterator[tracing.Span]:
        said: dict[str, str | bool] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": True,
        }
        with self._watched(self._tracer.start_span(f"chat {model}", kind=SpanKind.CLIENT, attributes=said)) as span:
            yield span

    def tell(self, told: call_spans.Told) -> None:
        """A span of what is over, from the record."""
        start = {"start_time": _nanoseconds(told.start)}
        span = self._started(told.name, told.trace, is_root=told.is_root, attributes=told.attributes, **start)
        if told.error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_nanoseconds(told.end))

    def _started(self, name: str, root: UUID, *, is_root: bool, **more: Any) -> trace.Span:
        """Start a span in the trace of this name: as its first one, or below that."""
        token = _root.set(root if is_root else None)
        try:
            return self._tracer.start_span(name, context=Context() if is_root else within(root), **more)
        finally:
            _root.reset(token)

    @contextmanager
    def _watched(self, started: trace.Span) -> Iterator[tracing.Span]:
        """Make the span the current one. Only the kind of an error is told: messages may say what it was about."""
        span = tracing.Span()
        try:
            with trace.use_span(started, record_exception=False, set_status_on_exception=False):
                yield span
        except Exception as error:
            started.set_status(Status(StatusCode.ERROR))
            started.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            started.set_attributes(span.attributes)
            started.end()

    def _on_move(self, **moved: Any) -> None:
        for told in call_spans.of(**moved):
            self.tell(told)


def within(root: UUID) -> Context:
    """Below the first span of this trace, whichever process made that."""
    parent = SpanContext(root.int, root.int & _LOW, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(parent), Context())


def _nanoseconds(at: Any) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
