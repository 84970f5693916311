"""Batches of external changes: a branch switch, a formatter's run."""

from __future__ import annotations

from typing import Literal

from orchestrator.core.events.base import Event
from orchestrator.core.ids import Seq

ExternalTrigger = Literal["watch", "scan", "overflow", "adopt"]


class ExternalBatchOpened(Event, frozen=True, kw_only=True, tag="external_batch_opened"):
    """The outside changes whose `cause` is this event were one act; it can be reverted as one."""

    trigger: ExternalTrigger


class ExternalBatchClosed(Event, frozen=True, kw_only=True, tag="external_batch_closed"):
    """The group is whole: so many changes."""

    group: Seq
    changes: int
    also: tuple[Seq, ...] = ()  # of them: those that were appended before the group was opened
