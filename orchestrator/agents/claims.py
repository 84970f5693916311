"""What an agent reports of an edit, held against the disk."""

from __future__ import annotations

import os
import stat

from orchestrator.agents.wire import Content

MOST_BYTES = 8 * 1024 * 1024
"""A larger file is not looked at."""


def missing(root: str, path: str, diff: Content) -> bool:
    """Whether a file inside the workspace is without the text that a reported edit put there. False if unknown.

    An edit that only takes text away says too little to tell.
    """
    if not diff.new_text.strip():
        return False
    try:
        text = _text(root, path)
    except FileNotFoundError:
        return True
    return text is not None and _plain(diff.new_text) not in _plain(text)


def takes_all(root: str, path: str, diff: Content) -> bool:
    """Whether an edit takes away all that is in a file: so Codex CLI tells of a file that it deletes."""
    if diff.new_text or not diff.old_text:
        return False
    try:
        text = _text(root, path)
    except FileNotFoundError:
        return False
    return text is not None and _plain(diff.old_text) == _plain(text)


def _text(root: str, path: str) -> str | None:
    """None: not to be known. Raises FileNotFoundError."""
    try:
        fd = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    with open(fd, "rb") as file:  # noqa: PTH123  # a descriptor
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            return None
        data = file.read(MOST_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _plain(text: str) -> str:
    """Agents and files may differ in white space: in line ends, and Claude Code shows a tab as two blanks."""
    return "".join(text.split())
