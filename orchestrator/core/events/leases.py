"""Who works where: paths that an agent reserved for a while."""

from __future__ import annotations

from typing import Literal

from orchestrator.core.annotations import Redactable
from orchestrator.core.events.base import Event
from orchestrator.core.ids import Seq

LeaseMode = Literal["exclusive", "shared"]


class LeaseGranted(Event, frozen=True, kw_only=True, tag="lease_granted"):
    """From here to its end these paths are reserved. Its fencing number is this event's seq."""

    globs: tuple[str, ...]
    mode: LeaseMode
    expires_at: int  # ms since the epoch, by the daemon's clock
    task: Seq | None = None
    reason: Redactable[str] = ""


class LeaseRenewed(Event, frozen=True, kw_only=True, tag="lease_renewed"):
    """Its holder asked for more time."""

    lease: Seq
    expires_at: int


class LeaseReleased(Event, frozen=True, kw_only=True, tag="lease_released"):
    """Its holder, or a person, gave it back."""

    lease: Seq
    by: str


class LeaseExpired(Event, frozen=True, kw_only=True, tag="lease_expired"):
    """Its time is over."""

    lease: Seq
