"""One file of a change for who decides on it: git's patch with every line, and what git's patch does not say."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.core.content import digest_of
from orchestrator.core.text.unified_diff import FileState, file_patch, git_mode, heads, unchanged_text

EVERY_LINE = 1 << 40
"""Of context: more than a file has."""


def whole_patch(old: FileState | None, new: FileState | None, *, compared: bool = True) -> str:
    """How one state of a file becomes another, None where it is absent; never cut, and never empty.

    A file that moves comes with all of its lines: where it comes to lie they may mean more than where they were.
    Rows beginning with `# ` are no lines of the file: permission bits that git does not tell apart, and sizes and
    hashes where no lines show how the contents differ (binary files, encodings). Cost: as of `file_patch`.
    """
    moved = old is not None and new is not None and old.path != new.path
    patch = file_patch(old, new, compared=compared, context=EVERY_LINE if moved else 3)
    before, after = (state.data if state is not None else b"" for state in (old, new))
    unshown = before != after and not patch.added and not patch.removed
    text = patch.text or f"{next(heads(old, new))}\n"
    if moved and old is not None and new is not None and before == after:
        lines = unchanged_text(old, new)
        unshown, text = lines is None, text + (lines or "")
    notes = [*_modes(old, new), *(_contents(old, new) if patch.binary or unshown else ())]
    return text + "".join(f"# {note}\n" for note in notes)


def _modes(old: FileState | None, new: FileState | None) -> Iterator[str]:
    """The permission bits of what is there after, where git's patch leaves them open."""
    if new is None or (old is not None and old.mode == new.mode):
        return
    if old is not None and git_mode(old) == git_mode(new):
        yield f"mode {old.mode:04o} becomes {new.mode:04o}"
    elif new.mode not in (0o644, 0o755):
        yield f"mode {new.mode:04o}"


def _contents(old: FileState | None, new: FileState | None) -> Iterator[str]:
    for name, state in (("before", old), ("after", new)):
        yield f"{name}: {f'{len(state.data)} bytes, {digest_of(state.data)}' if state is not None else 'no file'}"
