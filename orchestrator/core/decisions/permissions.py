"""Whether a file is executable, as a patch says it; no other permission bit can be patched."""

from __future__ import annotations

import msgspec

from orchestrator.core.decisions.decision import Apply, Facts, Held, Outcome, Part
from orchestrator.core.errors import FileNotFound, NothingToChange
from orchestrator.core.text.patch import FilePatch


def with_bits(outcome: Outcome, parsed: FilePatch, held: Held | None) -> Outcome:
    """The outcome, with the file made executable or no longer so if the patch says that."""
    if parsed.executable is None or not isinstance(outcome, Apply):
        return outcome
    mode = _bits(held.mode if held is not None else 0o644, executable=parsed.executable)
    if held is not None and mode == held.mode:
        return outcome
    *others, last = outcome.parts
    if held is not None and last.moved_from is not None:  # a rename alone sets no bits: it is written anew
        last = msgspec.structs.replace(last, moved_from=None, renamed_from=last.moved_from, data=held.data)
    return msgspec.structs.replace(outcome, parts=(*others, msgspec.structs.replace(last, mode=mode)))


def only_bits(parsed: FilePatch, facts: Facts) -> Apply:
    """A patch that changes nothing but these. Raises FileNotFound, NothingToChange."""
    held = facts.held
    if held is None:
        raise FileNotFound(facts.path, "there is no such file")
    mode = _bits(held.mode, executable=bool(parsed.executable))
    if mode == held.mode:
        raise NothingToChange(f"{facts.path} has these permission bits already")
    part = Part(path=facts.path, before=held.digest, after=held.digest, data=held.data, mode=mode)
    return Apply(parts=(part,), base=facts.version)


def _bits(mode: int, *, executable: bool) -> int:
    """As git does it: whoever may read it may run it."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
