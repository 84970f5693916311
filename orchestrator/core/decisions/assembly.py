"""Where files come to stand when several are brought back at once, as the parts of one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from orchestrator.core.change import Fit, PathChange
from orchestrator.core.content import Rung
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, NewContent, removed, replaced
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import EMPTY


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One file: what stands now, and what shall stand. A path of None: nothing."""

    present: WorkspacePath | None
    held: Held | None
    path: WorkspacePath | None
    now: Held | None
    rung: Rung = "current"
    clash: ConflictOutcome | None = None
    names: frozenset[WorkspacePath] = frozenset()  # all that the file ever had
    unseen: bool = False  # undone for one who may not know whether that changes the content

    @property
    def changed(self) -> bool:
        if self.unseen:
            return True
        before = self.held and (self.held.digest, self.held.mode)
        after = self.now and (self.now.digest, self.now.mode)
        return self.path != self.present or before != after


def assemble(results: Sequence[Result], facts: Mapping[WorkspacePath, Facts]) -> Apply:
    """One change of all of them. A file whose place is taken, or lies under a file, clashes."""
    clashes = [result.clash for result in results if result.clash is not None]
    going = [result for result in results if result.changed and result.clash is None]
    while (taken := _taken(going, facts)) is not None:
        going.remove(taken)
        if taken.path is not None and taken.now is not None:
            clashes.append(
                ConflictOutcome(
                    path=taken.path, base=None, base_version=None, proposed=taken.now.data, names=_others(taken)
                )
            )
    wanted: dict[WorkspacePath, Result] = {result.path: result for result in going if result.path is not None}
    paths = sorted({path for result in going for path in (result.present, result.path) if path is not None})
    moves = {result.path: result.present for result in going if _plain_move(result, facts, wanted)}
    left = {result.present for result in going if result.path is not None and result.present not in wanted}
    whose = {path: result for result in going for path in (result.present, result.path) if path is not None} | wanted
    changes = [
        PathChange(path, _digest(facts[path].held), None)
        if path in left
        else _change(path, wanted.get(path), facts, moves.get(path))
        for path in paths
    ]
    return Apply(
        paths=tuple(changes),
        contents={
            result.now.digest: NewContent(result.now.data, result.now.document)
            for result in going
            if result.now is not None and result.path not in moves
        },
        fit=Fit(rung="merged" if any(result.rung == "merged" for result in going) else "current"),
        names={path: _others(whose[path], path) for path in paths},
        conflicts=tuple(clashes),
    )


def _others(result: Result, path: WorkspacePath | None = None) -> tuple[WorkspacePath, ...]:
    """The names that its contents stood under, beside the one that it gets."""
    return tuple(sorted(result.names - {path if path is not None else result.path}))


def _taken(going: Sequence[Result], facts: Mapping[WorkspacePath, Facts]) -> Result | None:
    """The first file whose place another one keeps."""
    leaving = {result.present for result in going if result.present is not None}
    arriving: set[WorkspacePath] = set()
    for result in going:
        path = result.path
        if path is None:
            continue
        stays = facts[path].held is not None and path not in leaving
        if stays or path in arriving:
            return result
        arriving.add(path)
    return None


def _plain_move(result: Result, facts: Mapping[WorkspacePath, Facts], wanted: Mapping[WorkspacePath, Result]) -> bool:
    """Whether one rename does it: same content and bits, a free place, and nothing comes where it stood."""
    if result.present is None or result.path in (None, result.present) or result.path is None:
        return False
    held, now = result.held, result.now
    same = now is not None and held is not None and (now.digest, now.mode) == (held.digest, held.mode)
    return same and facts[result.path].held is None and result.present not in wanted


def _change(
    path: WorkspacePath,
    result: Result | None,
    facts: Mapping[WorkspacePath, Facts],
    source: WorkspacePath | None,
) -> PathChange:
    """What happens at one path; the file that stands there may go elsewhere, or for good, as another comes."""
    held = facts[path].held
    now = result.now if result is not None else None
    if result is None or now is None:
        return removed(path, held) if held is not None else PathChange(path, None, None)
    if source is not None:
        return PathChange(path, None, now.digest, mode=now.mode, moved_from=source)
    present = result.present if result.present != path else None
    mode = now.mode if held is None or now.mode != held.mode else None
    was = facts[present].held if present is not None else held
    before, after = was.text if was is not None else EMPTY, now.text
    change = replaced(path, held, now.digest, before, after)
    return msgspec.structs.replace(change, mode=mode, moved_from=present, rewritten=present is not None)


def _digest(held: Held | None) -> Digest | None:
    return held.digest if held is not None else None
