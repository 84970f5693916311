"""Entry point of all patch forms: recognises the form and parses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from orchestrator.core.errors import PatchInvalid
from orchestrator.core.text.forms import begin_patch, blocks, unified
from orchestrator.core.text.forms.hunks import FilePatch, Form, ParsedPatch
from orchestrator.core.text.forms.left_out import placeholders
from orchestrator.core.text.forms.rows import MAX_FILES, Rows, fence_of, path_in, too_many

_SHAPES = (
    "Send a unified diff ('--- a/x', '+++ b/x', '@@ …'), '*** Begin Patch', search/replace blocks, "
    "or a whole file in a fence below its path."
)


def parse(patch: str, path: str | None = None) -> ParsedPatch:
    """Recognise a patch's form by the first row that only one form has, and read it. `path` is what the call names.

    Raises PatchInvalid, whose message names the line, and PatchAmbiguous where two readings are possible.
    """
    rows = Rows(patch)
    if not patch.strip():
        raise PatchInvalid("the patch is empty.", hint=_SHAPES)
    form, at = recognise(rows)
    if form != "whole_file" and _within_a_file(rows, at):
        raise rows.ambiguous(
            "a patch begins in the middle of a fenced block, which may be a patch or a whole file",
            at,
            hint="Begin the fence with the patch, or use write_file for a whole file.",
        )
    match form:
        case "whole_file":
            whole = blocks.parse_whole_file(rows, path)
            if whole is None:
                raise rows.refused("it is not a patch in any form", 0, hint=_SHAPES)
            files: tuple[FilePatch, ...] = (whole,)
        case "begin_patch":
            files = begin_patch.parse_begin_patch(rows)
        case "search_replace":
            files = blocks.parse_search_replace(rows, path)
        case "unified":
            files = unified.parse_rows(rows, named=path is not None)
    for file in files:
        _refuse_left_out(rows, file, file.new_path or path or "")
    return ParsedPatch(form, joined(files))


def _refuse_left_out(rows: Rows, file: FilePatch, path: str) -> None:
    """Refuse a new line that replaces others which were left out. Raises PatchInvalid."""
    for text in _placeholders(file, path):
        at = next((at for at, row in enumerate(rows.rows) if row in {text, f"+{text}"}), None)
        raise rows.refused(
            f"{text.strip()[:60]!r} is a placeholder for lines that were left out",
            at,
            hint="Write every line; only lines between two hunks or blocks may be left out.",
        )


def _placeholders(file: FilePatch, path: str) -> Iterator[str]:
    yield from placeholders((file.whole or "").split("\n"), path, replaces=False)
    for hunk in file.hunks:
        old = {text.strip() for text in hunk.old}
        new = (text for tag, text in hunk.lines if tag == "+" and text.strip() not in old)
        yield from placeholders(new, path, replaces=any(tag == "-" and text.strip() for tag, text in hunk.lines))


def recognise(rows: Rows) -> tuple[Form, int]:
    """The form, and the row that shows it. Raises PatchInvalid for a conflict that a merge left."""
    for at, row in enumerate(rows.rows):
        if begin_patch.begins(row):
            return "begin_patch", at
        if blocks.begins(row):
            return "search_replace", at
        if unified.begins(rows, at):
            return "unified", at
        if row.startswith("<<<<<<< "):
            raise rows.refused("this is a merge's conflict, not a patch", at, hint=_SHAPES)
    return "whole_file", 0


def _within_a_file(rows: Rows, at: int) -> bool:
    """Whether other text of a fenced block is before the row at which the patch is said to begin."""
    opened: int | None = None
    marks = ""
    for i, row in enumerate(rows.rows[:at]):
        fence = fence_of(row)
        if fence is None:
            continue
        if opened is None:
            opened, marks = i, fence[0]
        elif not fence[1] and fence[0].startswith(marks):
            opened = None
    if opened is None:
        return False
    before = [row for row in rows.rows[opened + 1 : at] if row.strip()]
    named = len(before) == 1 and path_in(before[0]) is not None
    shell = len(before) == 1 and "<<" in before[0]
    return bool(before) and not named and not shell and not all(map(unified.announces, before))


def joined(files: Sequence[FilePatch]) -> tuple[FilePatch, ...]:
    """A file that is only changed may come again, as another section; one that goes may be made anew.

    All else names each file once.

    Raises PatchInvalid where a file that is made, removed or renamed is named again.
    """
    if len(files) > MAX_FILES:
        raise too_many(len(files))
    if len(files) > 1 and not all(file.headed for file in files):
        raise PatchInvalid(
            "several patches, but one of them names no file", hint="Give each its '---' and '+++' lines."
        )
    kept: list[FilePatch] = []
    changed_at: dict[str, int] = {}  # where in `kept` a file is only changed
    dropped_at: dict[str, int] = {}  # where one is deleted, whatever it holds
    taken: Counter[str] = Counter()
    for file in files:
        path = file.new_path or file.old_path or ""
        changed = file.old_path == file.new_path and file.executable is None and bool(file.hunks)
        if changed and path in changed_at:
            before = kept[changed_at[path]]
            kept[changed_at[path]] = msgspec.structs.replace(before, then=(*before.then, file.hunks))
            continue
        if path in dropped_at and file.old_path is None and file.whole is not None:
            kept[dropped_at.pop(path)] = file
            continue
        if changed:
            changed_at[path] = len(kept)
        if file.drops:
            dropped_at[path] = len(kept)
        kept.append(file)
        taken.update({one for one in (file.old_path, file.new_path) if one is not None})
    twice = next((path for path, times in taken.items() if times > 1), None)
    if twice is not None:
        hint = "Join its hunks under one header; '*** Add File' alone, or write_file, replaces all of a file."
        raise PatchInvalid(f"{twice} is patched twice", hint=hint)
    return tuple(kept)
