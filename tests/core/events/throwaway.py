"""As a plugin of pytest: one more event, there before anybody asks which events there are."""

from typing import ClassVar

import msgspec

from orchestrator.core.annotations import FromContent, NewContent, OldContent, Redactable, Secret
from orchestrator.core.change import PathChange
from orchestrator.core.events import sessions
from orchestrator.core.events.base import Event, Outcome
from orchestrator.core.ids import Digest, EscapedPath, WorkspacePath


class ThrownPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A struct of its own, that names no path."""

    hint: FromContent[str] = ""
    before: Digest | None = None
    remark: Redactable[str] = ""


class ThrownAway(Event, frozen=True, kw_only=True, tag="thrown_away"):
    """One of each."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("aborted",)
    proposes: ClassVar[bool] = True

    path: WorkspacePath
    asked: tuple[EscapedPath, ...] = ()
    parts: tuple[PathChange, ...] = ()
    remarks: tuple[ThrownPart, ...] = ()
    part: ThrownPart | None = None
    proposed: NewContent[Digest | None] = None
    removed: OldContent[tuple[Digest, ...]] = ()
    reason: Redactable[str] = ""
    key: Secret[str] = ""


ThrownAway.__module__ = sessions.__name__
vars(sessions)["ThrownAway"] = ThrownAway
