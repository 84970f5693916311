"""Reviewers: a conflict goes out, an answer for its regions comes back."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import WorkspacePath

Lines = tuple[str, ...]


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """Whose side it is, and what for."""

    agent: str
    task: str = ""
    reason: str = ""


class ReviewRegion(msgspec.Struct, frozen=True, kw_only=True):
    """One place that clashes, as each side has it, and the lines around it."""

    number: int  # from 1
    base: Lines
    current: Lines
    proposed: Lines
    before: Lines = ()
    after: Lines = ()


class ReviewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A conflict, as far as a reviewer is shown it."""

    conflict: str  # "@N"
    path: WorkspacePath
    regions: tuple[ReviewRegion, ...]
    proposer: Party
    holders: tuple[Party, ...] = ()  # who made the current lines


class RegionText(msgspec.Struct, frozen=True):
    """What a reviewer wants in one region."""

    region: int  # from 1
    lines: Lines


class ReviewUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer cost."""

    model: str = ""
    prompt_hash: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0
    took_ms: int = 0


class ReviewReply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: one side for all regions, lines for each, or nothing that it would vouch for."""

    verdict: Literal["current", "proposed", "content", "reject"]
    regions: tuple[RegionText, ...] = ()
    reason: str = ""
    usage: ReviewUsage = ReviewUsage()


class ReviewFailure(OrchestratorError):
    """A reviewer gave nothing that counts; `code` says in which way."""

    code = "review_failed"


class Reviewer(Protocol):
    """One reviewer that the policy can name."""

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask. Raises ReviewFailure, whatever went wrong; may be cancelled."""
