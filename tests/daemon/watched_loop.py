"""A daemon that notes what its event loop does with large texts: `python -m tests.daemon.watched_loop FOLDER …`.

At its end the file `on_loop` in the folder has each function of `core.text` and `core.decisions` that was called there
with a text of over `LARGE` characters. So a test can say what runs where, however fast the machine is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from orchestrator import daemon
from orchestrator.core.text.encoding import Document

FOUND = "on_loop"
"""The file in the folder."""

LARGE = 512 * 1024
ROOMS = ("/orchestrator/core/text/", "/orchestrator/core/decisions/")


class Watch:
    """A profiler's hook that looks at the arguments of calls."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._watched: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        watched = self._watched.get(code)
        if watched is None:
            watched = self._watched[code] = any(room in code.co_filename for room in ROOMS)
        if not watched or event != "call":
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(_size(frame.f_locals.get(name)) > LARGE for name in names):
            self.found.add(f"{Path(code.co_filename).stem}.{code.co_qualname}")


def _size(value: object) -> int:
    match value:
        case str() | bytes():
            return len(value)
        case list() | tuple() if all(isinstance(item, str) for item in value):
            return sum(map(len, value))
        case Document():
            return sum(map(len, value.lines))
        case _:
            return 0


def main(argv: list[str]) -> int:
    """As `orchestrator daemon`."""
    watch = Watch()
    sys.setprofile(watch)
    try:
        return daemon.main(argv[1:])
    finally:
        sys.setprofile(None)
        (Path(argv[0]) / FOUND).write_text(json.dumps(sorted(watch.found)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
