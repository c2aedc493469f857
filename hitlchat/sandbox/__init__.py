"""Untrusted Python within limits: an interpreter without powers, in a process without rights."""

from hitlchat.sandbox.engine import check, check_arguments, run
from hitlchat.sandbox.importable import HostFunction
from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.pool import NO_PROGRAMS, Share, close, on_behalf, shares, status
from hitlchat.sandbox.walls import Status, Wall, Walls, walls
from hitlchat.sandbox.wire import Fault, FaultKind, Problem, Report, Stopped

__all__ = [
    "NO_PROGRAMS",
    "Fault",
    "FaultKind",
    "HostFunction",
    "Limits",
    "Problem",
    "Report",
    "Share",
    "Status",
    "Stopped",
    "Wall",
    "Walls",
    "check",
    "check_arguments",
    "close",
    "on_behalf",
    "run",
    "shares",
    "status",
    "walls",
]
