"""What undoes one change: its inverse, carried onto the present so that later work stays."""

from __future__ import annotations

import msgspec

from orchestrator.core.content import PathChange
from orchestrator.core.decisions.decision import Apply, Base, Clash, Facts, Need, Outcome, Part
from orchestrator.core.decisions.patching import rebase
from orchestrator.core.errors import NothingToChange, RevertImpossible
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.text.encoding import decode


def revert_content(change: Seq, changed: PathChange, facts: Facts) -> Outcome:
    """Undo what one change did to the content of one path.

    `changed` may be of an outside change. Raises NothingToChange when it is undone already,
    RevertImpossible when a content was not kept. Answers Clash where later work overlaps.
    """
    held = facts.held
    now = held.digest if held else None
    if now == changed.before:
        raise NothingToChange(
            f"{changed.path} is as it was before {show(change)}", hint="The change is undone already."
        )
    if now == changed.after:
        return _straight_back(changed, facts)
    if held is None or changed.before is None or changed.after is None:
        return _absent(changed, facts)
    missing = tuple(d for d in (changed.before, changed.after) if d not in facts.contents)
    if missing:
        return Need(missing)
    old, new = decode(facts.contents[changed.after]), decode(facts.contents[changed.before])
    if old is None or new is None:
        return Clash(
            path=changed.path,
            base=changed.after,
            base_version=change,
            proposed=facts.contents[changed.before],
        )
    onto = msgspec.structs.replace(facts, base=Base(change, changed.after))
    return rebase(old, new, onto, anchors=())


def revert_move(change: Seq, source: PathChange, target: PathChange, at_source: Facts, at_target: Facts) -> Apply:
    """Move a file back to where it was, with the edits that it got since.

    Raises RevertImpossible when it is no longer at its new place, or the old one is taken.
    """
    held = at_target.held
    if held is None:
        raise RevertImpossible(
            f"{target.path} is not there any more, so {show(change)} can't be moved back",
            hint="Revert the later change of that file first.",
        )
    if at_source.held is not None:
        raise RevertImpossible(
            f"{source.path} is taken by another file, and a move never overwrites",
            hint=f"Move or delete {source.path} first.",
        )
    return Apply(parts=moved(target.path, source.path, at_target), base=change)


def moved(source: WorkspacePath, target: WorkspacePath, at_source: Facts) -> tuple[Part, ...]:
    """The two parts of moving what `source` holds."""
    held = at_source.held
    if held is None:
        raise ValueError("nothing to move")
    return (
        Part(path=source, before=held.digest, after=None),
        Part(path=target, before=None, after=held.digest, mode=held.mode, moved_from=source),
    )


def _straight_back(changed: PathChange, facts: Facts) -> Outcome:
    """Nothing came after it."""
    if changed.before is None:
        return Apply(parts=(Part(path=changed.path, before=changed.after, after=None),), base=facts.version)
    if changed.before not in facts.contents:
        return Need((changed.before,))
    data = facts.contents[changed.before]
    hunks = tuple(
        msgspec.structs.replace(
            hunk, old_start=hunk.new_start, old_len=hunk.new_len, new_start=hunk.old_start, new_len=hunk.old_len
        )
        for hunk in changed.hunks
    )
    part = Part(
        path=changed.path,
        before=changed.after,
        after=changed.before,
        data=data,
        hunks=hunks,
        binary=changed.binary,
        mode=changed.mode if facts.held is None else None,
    )
    return Apply(parts=(part,), base=facts.version)


def _absent(changed: PathChange, facts: Facts) -> Outcome:
    """Created and changed since, deleted and made anew, or changed and deleted since: a person decides."""
    if changed.before is not None and changed.before not in facts.contents:
        return Need((changed.before,))
    return Clash(
        path=changed.path,
        base=changed.after,
        base_version=None,
        proposed=facts.contents[changed.before] if changed.before is not None else None,
    )
