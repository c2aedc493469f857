"""Untrusted Python within limits: an interpreter without powers, in a process without rights."""

from .check import check
from .engine import run
from .grants import HostFunction
from .keepers import close
from .limits import Limits
from .report import Fault, FaultKind, Problem, Report
from .shares import Share, on_behalf, shares
from .standing import Status, Wall, status
from .walls import Walls, walls

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
