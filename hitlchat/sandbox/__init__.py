"""Untrusted Python within limits: an interpreter without powers, in a process without rights."""

from hitlchat.sandbox.engine import check, run
from hitlchat.sandbox.importable import HostFunction
from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.pool import close
from hitlchat.sandbox.shares import Share, on_behalf, shares
from hitlchat.sandbox.status import Status, Wall, status
from hitlchat.sandbox.walls import Walls, walls
from hitlchat.sandbox.wire import Fault, FaultKind, Problem, Report

__all__ = [
    "Fault",
    "FaultKind",
    "HostFunction",
    "Limits",
    "Problem",
    "Report",
    "Share",
    "Status",
    "Wall",
    "Walls",
    "check",
    "close",
    "on_behalf",
    "run",
    "shares",
    "status",
    "walls",
]
