"""Traces: what a collector gets over the wire, and that without one nothing is there."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_django import Settings

from hitlchat.gate import decide
from hitlchat.gate.models import Tool
from hitlchat.telemetry.traces import Traces
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, recording, run
from tests.gate.conftest import entered, tool
from tests.processes import ROOT, Servers, installation, migrated, servers
from tests.waiting import until

__all__ = ["entered", "installation", "migrated", "servers", "tool"]
pytestmark = pytest.mark.django_db(transaction=True)

Spans = list[dict[str, Any]]


class Collector:
    """Takes in traces over HTTP on this machine."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def spans(self) -> Spans:
        found: Spans = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    found += [_read(span) for span in scope.spans]
        return sorted(found, key=lambda span: int(span["start"]))


def _read(span: Any) -> dict[str, Any]:
    return {
        "name": span.name,
        "trace": UUID(bytes=span.trace_id),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "start": span.start_time_unix_nano,
        "seconds": (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        "failed": span.status.code == 2,
        **{each.key: _value(each.value) for each in span.attributes},
    }


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture
def traces(collector: Collector, settings: Settings) -> Iterator[Traces]:
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url
    made = Traces()
    yield made
    made.end()


def test_a_programs_call_is_a_trace_with_the_wait_and_the_run_and_nothing_of_what_it_is_about(
    bob: User, tool: Tool, collector: Collector, traces: Traces
) -> None:
    call = approved(bob, tool, {"text": "SECRETONE"}, kind="api")
    run(call)
    run(approved(bob, recording("failing", source="failing"), {"text": "SECRETTWO"}))
    left = ask(bob, recording("left"), {"text": "x"}, kind="mcp")
    decide.decline(approval_of(left).pk, signed_in(bob), reason="SECRETFIVE")
    traces.end()
    spans = {(span["name"], span["hitlchat.call.id"]): span for span in collector.spans()}
    executed, waited = spans["execute_tool refund", str(call.pk)], spans["wait_for_approval", str(call.pk)]
    assert executed["trace"] == waited["trace"] == call.pk
    assert (executed["parent"], waited["parent"]) == ("", executed["id"])
    assert executed["gen_ai.operation.name"] == "execute_tool"
    assert (executed["gen_ai.tool.name"], executed["hitlchat.risk"]) == ("refund", 2)
    assert (waited["hitlchat.outcome"], waited["hitlchat.means"]) == ("approved", "session")
    (failed,) = (span for span in spans.values() if span["name"] == "execute_tool failing")
    assert (failed["failed"], failed["error.type"]) == (True, "error")
    declined = spans["wait_for_approval", str(left.pk)]
    assert (declined["hitlchat.outcome"], declined["parent"]) == ("declined", "")
    assert b"SECRET" not in b"".join(collector.bodies)
    assert len(spans) == 5


@pytest.mark.slow("starts a program")
@pytest.mark.embedded
def test_without_an_endpoint_nothing_of_it_is_imported() -> None:
    # Parts of the SDK are by `redis`, wherever it is installed.
    ours = "[name for name in sys.modules if name.startswith(('opentelemetry.exporter', 'hitlchat.telemetry.traces'))]"
    command = [sys.executable, "-c", f"import sys, hitlchat.asgi; print(*{ours})"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.servers("what a killed process leaves is what was committed")
@pytest.mark.slow("starts processes")
@pytest.mark.processes
def test_a_run_that_goes_on_in_another_process_is_one_trace(servers: Servers, collector: Collector) -> None:
    code = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
    servers.home.add_tool("echo", code, hitl_mode="REQUIRED")
    first = servers.start(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    bob = first.sign_in("bob")
    conversation = bob.begin('Call echo with {"text": "SECRETONE"}')
    (waiting,) = until(lambda: bob.get("/api/approvals").json(), "the question")
    first.stop()
    second = servers.start(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    bob = second.sign_in("bob")
    bob.post(f"/api/approvals/{waiting['id']}/approve")
    until(lambda: bob.get(f"/api/calls/{waiting['callId']}").json()["status"] == "succeeded", "the call")
    until(lambda: len(bob.get(f"/api/conversations/{conversation}").json()["messages"]) == 3, "the answer")
    second.stop()
    spans = collector.spans()
    assert len({span["trace"] for span in spans}) == 1
    first_one = next(span for span in spans if not span["parent"])
    assert first_one["name"] == "invoke_agent hitlchat"
    below = [span["name"] for span in spans if span["parent"] == first_one["id"]]
    assert {"wait_for_approval", "execute_tool echo", "invoke_agent hitlchat", "chat demo"} == {*below}
    assert [span["gen_ai.provider.name"] for span in spans if span["name"] == "chat demo"] == ["hitlchat.demo"] * 2
    assert {span.get("gen_ai.conversation.id", conversation) for span in spans} == {conversation}
    assert b"SECRET" not in b"".join(collector.bodies)
