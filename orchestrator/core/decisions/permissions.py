"""Whether a file is executable, as a patch says it; no other permission bit can be patched."""

from __future__ import annotations

import msgspec

from orchestrator.core.change import Fit, PathChange
from orchestrator.core.decisions.decision import Apply, Facts, Held, NewContent, Outcome
from orchestrator.core.errors import FileNotFound, NothingToChange
from orchestrator.core.text.patch import FilePatch


def with_bits(outcome: Outcome, parsed: FilePatch, held: Held | None) -> Outcome:
    """The outcome, with the file made executable or no longer so if the patch says that."""
    if parsed.executable is None or not isinstance(outcome, Apply):
        return outcome
    mode = _bits(held.mode if held is not None else 0o644, executable=parsed.executable)
    if held is not None and mode == held.mode:
        return outcome
    *others, last = outcome.paths
    contents = outcome.contents
    if held is not None and last.renamed:  # a rename alone sets no bits: it is written anew
        contents = {held.digest: NewContent(held.data)}
    last = msgspec.structs.replace(last, mode=mode, rewritten=last.moved_from is not None)
    return msgspec.structs.replace(outcome, paths=(*others, last), contents=contents)


def only_bits(parsed: FilePatch, facts: Facts) -> Apply:
    """A patch that changes nothing but these. Raises FileNotFound, NothingToChange."""
    held = facts.held
    if held is None:
        raise FileNotFound(facts.path, "there is no such file")
    mode = _bits(held.mode, executable=bool(parsed.executable))
    if mode == held.mode:
        raise NothingToChange(f"{facts.path} has these permission bits already")
    change = PathChange(facts.path, held.digest, held.digest, mode=mode)
    return Apply(paths=(change,), contents={held.digest: NewContent(held.data)}, fit=Fit(base=facts.version))


def _bits(mode: int, *, executable: bool) -> int:
    """As git does it: whoever may read it may run it."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
