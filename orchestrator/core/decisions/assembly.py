"""The paths of files when several are brought back at once, as the parts of one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from orchestrator.core.change import Fit, PathChange
from orchestrator.core.content import Rung
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, NewContent, removed, replaced
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.encoding import EMPTY


class Result(msgspec.Struct, kw_only=True):
    """One file: its path and content now (`present`, `held`), and after the undo (`path`, `now`). None: absent."""

    present: WorkspacePath | None
    held: Held | None
    path: WorkspacePath | None
    now: Held | None
    rung: Rung = "current"
    conflict: ConflictOutcome | None = None
    names: frozenset[WorkspacePath] = frozenset()  # all that the file ever had
    unseen: bool = False  # undone for one who may not know whether that changes the content

    @property
    def changed(self) -> bool:
        return self.unseen or self.path != self.present or not self.same_content

    @property
    def same_content(self) -> bool:
        """Whether content and permission bits stay."""
        before = self.held and (self.held.digest, self.held.mode)
        return before == (self.now and (self.now.digest, self.now.mode))

    def stays(self) -> None:
        """Nothing is done to this file."""
        self.path, self.now, self.rung, self.unseen = self.present, self.held, "current", False

    def other_names(self, path: WorkspacePath | None) -> tuple[WorkspacePath, ...]:
        """The other paths at which its contents were."""
        return tuple(sorted(self.names - {path}))


def assemble(results: Sequence[Result], facts: Mapping[WorkspacePath, Facts]) -> Apply:
    """One change of all of them. A file whose path is taken, or lies under a file, is a conflict."""
    conflicts = [result.conflict for result in results if result.conflict is not None]
    going = [result for result in results if result.changed and result.conflict is None]
    while (taken := _taken(going, facts)) is not None:
        path, result = taken
        going.remove(result)
        if result.now is not None:
            conflicts.append(
                ConflictOutcome(
                    path=path, base=None, base_version=None, proposed=result.now.data, names=result.other_names(path)
                )
            )
    arriving = {result.path: result for result in going if result.path is not None}
    by_path = {result.present: result for result in going if result.present is not None} | arriving
    by_path = {path: result for path, result in by_path.items() if not _is_there(result, facts[path].held)}
    renamed = {result.path for result in going if _is_rename(result, facts, arriving)}
    return Apply(
        paths=tuple(
            _change(path, by_path[path], facts[path].held, renamed=path in renamed) for path in sorted(by_path)
        ),
        contents={
            result.now.digest: NewContent(result.now.data, result.now.document)
            for result in by_path.values()
            if result.now is not None and result.path not in renamed
        },
        fit=Fit(rung="merged" if any(result.rung == "merged" for result in going) else "current"),
        names={path: result.other_names(path) for path, result in by_path.items()},
        conflicts=tuple(conflicts),
    )


def _taken(going: Sequence[Result], facts: Mapping[WorkspacePath, Facts]) -> tuple[WorkspacePath, Result] | None:
    """The first file whose path another one keeps."""
    leaving = {result.present for result in going}
    arriving: set[WorkspacePath] = set()
    for result in going:
        if result.path is None:
            continue
        if result.path in arriving or (facts[result.path].held is not None and result.path not in leaving):
            return result.path, result
        arriving.add(result.path)
    return None


def _is_there(result: Result, held: Held | None) -> bool:
    """Whether a file that comes back is at its path already: it was removed and made again as it was."""
    if result.present is not None or result.now is None or held is None or result.unseen:
        return False
    return (held.digest, held.mode) == (result.now.digest, result.now.mode)


def _is_rename(result: Result, facts: Mapping[WorkspacePath, Facts], arriving: Mapping[WorkspacePath, Result]) -> bool:
    """Whether one rename does it: same content and bits, a free path, and no other file comes to the old one."""
    if result.present is None or result.path is None or result.path == result.present or result.now is None:
        return False
    return result.same_content and facts[result.path].held is None and result.present not in arriving


def _change(path: WorkspacePath, result: Result, held: Held | None, *, renamed: bool) -> PathChange:
    """What happens at one path, which holds `held`: `result` comes there, or leaves it."""
    now = result.now
    if result.path != path or now is None:
        if held is None or result.path is not None:
            return PathChange(path, held.digest if held is not None else None, None)
        return removed(path, held)
    if renamed:
        return PathChange(path, None, now.digest, mode=now.mode, moved_from=result.present)
    source = result.present if result.present != path else None
    was = held if result.present is None else result.held
    change = replaced(path, held, now.digest, was.text if was is not None else EMPTY, now.text)
    mode = now.mode if held is None or now.mode != held.mode else None
    return msgspec.structs.replace(change, mode=mode, moved_from=source, rewritten=source is not None)
