"""A change as its caller wants it, apart from what it does."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.core.ids import Seq
from orchestrator.engine.caller import Call, Caller


class ChangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants it by which call, and on what terms."""

    caller: Caller
    call: Call
    base: p.Version | None = None
    preview: bool = False
    supersedes: p.Version | None = None
    reason: str = ""
    resolves: Seq | None = None
    pre_approved: bool = False  # a person with the approver code stands behind it: ask counts as allow
