"""Untrusted Python within limits: an interpreter without powers, in a process without rights."""

from .check import check
from .engine import run
from .grants import HostFunction
from .limits import Limits
from .pool import JailMissing, close
from .report import Fault, FaultKind, Problem, Report
from .walls import Walls, walls

__all__ = [
    "Fault",
    "FaultKind",
    "HostFunction",
    "JailMissing",
    "Limits",
    "Problem",
    "Report",
    "Walls",
    "check",
    "close",
    "run",
    "walls",
]
