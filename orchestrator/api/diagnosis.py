"""What `orchestrator doctor` answers."""

from __future__ import annotations

from typing import Literal

from orchestrator.api import results as r


class Check(r.Result, frozen=True, kw_only=True):
    """One thing that was looked at. `next`: what to do about it."""

    subject: str
    status: Literal["ok", "warning", "failure"]
    finding: str
    next: str = ""


class Diagnosis(r.Result, frozen=True, kw_only=True):
    """`ok`: nothing has failed."""

    ok: bool
    checks: tuple[Check, ...]
