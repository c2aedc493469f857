"""What follows from a tool's code and capabilities as they stand in the editor; nothing is saved and nothing is run."""

from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import async_to_sync

from hitlchat import sandbox
from hitlchat.gate import canonical
from tools_studio import capabilities, risk, signature
from tools_studio.capabilities import Capabilities, CapabilityError
from tools_studio.risk import Risk
from tools_studio.signature import Signature, SignatureError


@dataclass(frozen=True)
class Finding:
    """Something wrong, in a sentence; `line` counts from 1, None where it belongs to no line."""

    line: int | None
    message: str


@dataclass(frozen=True)
class Inspection:
    name: str
    findings: list[Finding] = field(default_factory=list)
    signature: Signature | None = None
    capabilities: Capabilities | None = None
    risk: Risk | None = None

    @property
    def model_view(self) -> str:
        """The tool as a model is told of it."""
        if self.signature is None:
            return ""
        shown = {
            "name": self.name or "(no name yet)",
            "description": self.signature.description,
            "parameters": self.signature.input_schema,
        }
        return canonical.pretty(shown, indent=2)

    @property
    def returns(self) -> str:
        schema = self.signature.output_schema if self.signature else None
        return str(schema.get("type", "any")) if schema else "anything"


def inspect(name: str, code: str, declared: dict[str, Any]) -> Inspection:
    """Everything at once: the signature's schema, the capabilities' risk, and what the checker finds."""
    findings: list[Finding] = []
    granted = _capabilities(declared, findings)
    found = _signature(code, findings)
    stubs = granted.stubs() if granted else ""
    for problem in async_to_sync(sandbox.check)(code, stubs=stubs, known=capabilities.ALL_NAMES):
        findings.append(Finding(problem.line, problem.message))
    level = risk.assess(granted.as_json()) if granted else None
    return Inspection(name, findings, found, granted, level)


def _capabilities(declared: dict[str, Any], findings: list[Finding]) -> Capabilities | None:
    try:
        return capabilities.parse(declared)
    except CapabilityError as error:
        findings.append(Finding(None, str(error)))
        return None


def _signature(code: str, findings: list[Finding]) -> Signature | None:
    try:
        return signature.read(code)
    except SignatureError as error:
        findings.append(Finding(error.line, str(error)))
        return None
