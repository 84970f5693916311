"""Whether an edit that an agent reports is on disk."""

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
        fd = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    with open(fd, "rb") as file:  # noqa: PTH123  # a descriptor
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            return False
        data = file.read(MOST_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    return _plain(diff.new_text) not in _plain(text)


def _plain(text: str) -> str:
    """Agents and files may differ in white space: in line ends, and Claude Code shows a tab as two blanks."""
    return "".join(text.split())
