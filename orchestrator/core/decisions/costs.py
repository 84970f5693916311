"""How much work a decision is, before it is made."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.content import Content, LargeContent
from orchestrator.core.decisions.commands import AllFacts, Command, Delete, DirectoryCommand, Edit, Move, Write
from orchestrator.core.decisions.decision import Held
from orchestrator.core.decisions.patches import Patch
from orchestrator.core.decisions.structure import Change
from orchestrator.core.decisions.undo import Undo
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.locate import Replacement

LARGE_BYTES = 64 * 1024
"""Texts up to this size are compared at once."""

LARGE_LINES = LARGE_BYTES // 32

WRITTEN_BYTES = 512 * 1024
"""A new content up to this size is encoded at once."""

SEARCHED_BYTES = 64 * 1024 * 1024
"""Of all texts that are searched for all passages: so much is searched at once, to see whether more is to be done."""

SLICE_BYTES = 1024 * 1024
"""Of a text that are searched in one go."""


def large(*documents: Document) -> bool:
    """Whether comparing these texts may take long. Cost: of large ones, nothing."""
    if sum(document.line_count for document in documents) > LARGE_LINES:
        return True
    return sum(sum(map(len, document.lines)) for document in documents) > WRITTEN_BYTES


def costly(command: Command, facts: AllFacts) -> bool:
    """Whether deciding may take long: large texts to compare, or to search by likeness.

    Cost: a search in C of all the text; of a large one it belongs beside the event loop.
    """
    if effort(command) > LARGE_LINES:
        return True
    if isinstance(command, Write) and len(command.content) > WRITTEN_BYTES:
        return True
    if size_of(facts) <= LARGE_BYTES:
        return False
    match command:
        case Edit(path=path, changes=changes):
            held, base = facts[path].held, facts[path].base
            if held is None:
                return False
            rebases = base is not None and base.digest != held.digest
            return rebases or len(changes) * len(held.data) > SEARCHED_BYTES or not _quoted(changes, held)
        case Write(mode="append" | "create") | Delete(directory=None) | Move() | DirectoryCommand():
            return False
        case _:
            return True


def effort(command: Command) -> int:
    """How long it takes to decide, in lines to place and in versions to go through.

    For each more section of a file, the text that the ones before it leave is made.
    """
    match command:
        case Undo(histories=histories):
            return sum(map(len, histories.values()))
        case Patch(files=files):
            patches = [item.patch for item in files]
        case _:
            return 0
    lines = sum(len(hunk.lines) for patch in patches for hunks in (patch.hunks, *patch.then) for hunk in hunks)
    lines += sum(patch.whole.count("\n") for patch in patches if patch.whole is not None)
    return lines + 200 * sum(len(patch.then) for patch in patches)


def size_of(facts: AllFacts) -> int:
    """Of the largest text, in bytes; a line counts as 32 bytes at least."""
    held = (here.held.data for here in facts.values() if here.held is not None)
    fetched = {id(here.contents): here.contents for here in facts.values()}  # facts of many files share one
    kept = (data for contents in fetched.values() for data in contents.values())
    return max((_weight(data) for data in (*held, *kept)), default=0)


def _weight(data: Content) -> int:
    if isinstance(data, LargeContent):
        return 0  # nothing is compared with it
    return max(len(data), data.count(b"\n") * (LARGE_BYTES // LARGE_LINES))


def _quoted(changes: Sequence[Change], held: Held) -> bool:
    """Whether all that is searched is in the file as it was quoted."""
    data = held.data
    if isinstance(data, LargeContent):
        return True
    searched = [change.search for change in changes if isinstance(change, Replacement)]
    forms = (dict.fromkeys((text, text.replace("\n", "\r\n"))) for text in searched)
    return all(any(_holds(data, form.encode("utf-8", "replace")) for form in either) for either in forms)


def _holds(data: bytes, sought: bytes) -> bool:
    """Slice by slice: one search of it all would keep the interpreter lock."""
    return any(
        data.find(sought, at, at + SLICE_BYTES + len(sought)) >= 0 for at in range(0, len(data) or 1, SLICE_BYTES)
    )
