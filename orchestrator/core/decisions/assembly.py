"""Where files come to stand when several are brought back at once, as the parts of one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from orchestrator.core.content import Rung
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, Part
from orchestrator.core.decisions.rebase import EMPTY, line_hunks
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import Document, decode, remembered


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
    parts = tuple(
        Part(path=path, before=_digest(facts[path].held), after=None, names=_others(whose[path], path))
        if path in left
        else msgspec.structs.replace(
            _part(path, wanted.get(path), facts, moves.get(path)), names=_others(whose[path], path)
        )
        for path in paths
    )
    rung: Rung = "merged" if any(result.rung == "merged" for result in going) else "current"
    return Apply(parts=parts, rung=rung, clashes=tuple(clashes))


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


def _part(
    path: WorkspacePath,
    result: Result | None,
    facts: Mapping[WorkspacePath, Facts],
    source: WorkspacePath | None,
) -> Part:
    """What happens at one path; the file that stands there may go elsewhere, or for good, as another comes."""
    held = facts[path].held
    before = held.digest if held else None
    now = result.now if result is not None else None
    if now is not None and source is not None:
        return Part(path=path, before=None, after=now.digest, mode=now.mode, moved_from=source)
    old, new = _text(held), _text(now)
    binary = old is None or new is None
    hunks = line_hunks(old, new) if old is not None and new is not None else ()
    if result is None or now is None:
        return Part(path=path, before=before, after=None, mode=held.mode if held else None, hunks=hunks, binary=binary)
    renamed = result.present if result.present != path else None
    if renamed is not None:
        old = _text(facts[renamed].held)
        binary = old is None or new is None
        hunks = line_hunks(old, new) if old is not None and new is not None else ()
    return Part(
        path=path,
        before=before,
        after=now.digest,
        renamed_from=renamed,
        data=now.data,
        mode=now.mode if held is None or now.mode != held.mode else None,
        document=now.document,
        encoding=remembered(new),
        hunks=hunks,
        binary=binary,
    )


def _text(held: Held | None) -> Document | None:
    if held is None:
        return EMPTY
    return held.document or decode(held.data)


def _digest(held: Held | None) -> Digest | None:
    return held.digest if held is not None else None
