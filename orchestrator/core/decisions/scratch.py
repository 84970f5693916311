"""What a command made of a copy of the workspace, brought onto what is there now: file by file."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from orchestrator.core.change import Fit, PathChange, PermissionCheck
from orchestrator.core.content import RUNGS, digest_of
from orchestrator.core.decisions.commands import AllFacts, Command
from orchestrator.core.decisions.decision import (
    Apply,
    Base,
    ConflictOutcome,
    Facts,
    Need,
    NewContent,
    Outcome,
    Source,
    removed,
    replaced,
)
from orchestrator.core.decisions.rebase import rebase
from orchestrator.core.errors import NothingToChange
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.read_sets import Rule
from orchestrator.core.text.encoding import EMPTY, decode


class ScratchFile(msgspec.Struct, frozen=True):
    """One file that came out otherwise than it was copied."""

    path: WorkspacePath
    before: Digest | None  # of what was copied; None: there was none
    version: Seq | None  # that had it, if the journal has its content
    content: bytes | None  # None: it was deleted
    mode: int | None


class ScratchPatch(Command, frozen=True, kw_only=True):
    """All of them as one change; what others changed meanwhile is rebased onto, or waits as a conflict by itself."""

    files: tuple[ScratchFile, ...]

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return tuple(item.path for item in self.files)

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return dict.fromkeys(self.paths, "none")

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return tuple(permission(item, there=facts[item.path].held is not None) for item in self.files)

    def decide(self, facts: AllFacts) -> Outcome:
        """Raises NothingToChange."""
        changes: list[PathChange] = []
        contents: dict[Digest, NewContent] = {}
        conflicts: list[ConflictOutcome] = []
        digests: dict[Digest, None] = {}
        outlines: list[Source] = []
        fits = [Fit()]
        for item in self.files:
            outcome = _onto(item, facts[item.path])
            match outcome:
                case Need():
                    digests |= dict.fromkeys(outcome.digests)
                    outlines += outcome.outlines
                case ConflictOutcome():
                    conflicts.append(outcome)
                case Apply():
                    changes += outcome.paths
                    contents |= outcome.contents
                    fits.append(outcome.fit)
                case None:
                    continue
        if digests or outlines:
            return Need(tuple(digests), tuple(outlines))
        if not changes and not conflicts:
            raise NothingToChange("the workspace holds already what the command made")
        if not changes and len(conflicts) == 1:
            return conflicts[0]
        fit = max(fits, key=lambda fit: RUNGS.index(fit.rung))
        return Apply(paths=tuple(changes), contents=contents, fit=fit, conflicts=tuple(conflicts))


def permission(item: ScratchFile, *, there: bool) -> PermissionCheck:
    """What policy is asked about a file."""
    if item.content is None:
        return PermissionCheck("delete", item.path)
    return PermissionCheck("write" if there else "create", item.path)


def _onto(item: ScratchFile, here: Facts) -> Outcome | None:
    """One file, onto what its path holds now; None where it holds that already."""
    held = here.held
    now = held.digest if held is not None else None
    after = digest_of(item.content) if item.content is not None else None
    if now == after and (held is None or item.mode in (None, held.mode)):
        return None
    if now in (item.before, after):
        return _straight(item, here)
    base = Base(item.version, item.before) if item.version is not None and item.before is not None else None
    onto = msgspec.structs.replace(here, base=base)
    if base is None or held is None or item.content is None:
        return onto.conflict(item.content)
    if base.digest not in here.contents:
        return Need((base.digest,))
    like = held.document.encoding_hint if held.document is not None else None
    data = here.contents[base.digest]
    old = decode(data, like=like) if isinstance(data, bytes) else None
    new = decode(item.content, like=like)
    if old is None or new is None or held.text is None:
        return onto.conflict(item.content)
    try:
        return rebase(old, new, onto, anchors=())
    except NothingToChange:
        return None


def _straight(item: ScratchFile, here: Facts) -> Apply | None:
    """Nobody changed it meanwhile."""
    held = here.held
    if item.content is None:
        return Apply(paths=(removed(item.path, held),)) if held is not None else None
    before = held.text if held is not None else EMPTY
    text = decode(item.content, like=before.encoding_hint if before is not None else None)
    digest = digest_of(item.content)
    change = replaced(item.path, held, digest, before, text)
    if held is None or item.mode != held.mode:
        change = msgspec.structs.replace(change, mode=item.mode)
    return Apply(paths=(change,), contents={digest: NewContent(item.content, text)})
