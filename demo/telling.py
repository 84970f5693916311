"""How the story is told: short paragraphs on stdout, with the journal's versions in them."""

from __future__ import annotations

import time
from typing import Any

DIFF_LINES = 9
WIDTH = 150


class Teller:
    """Writes the chapters as they happen."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._chapter = 0

    def chapter(self, title: str) -> None:
        self._chapter += 1
        print(f"\n{self._chapter}. {title}", flush=True)

    def line(self, text: str) -> None:
        print(f"   {text}"[:WIDTH], flush=True)

    def change(self, who: str, what: str, answer: dict[str, Any]) -> None:
        """Who did what, what came of it, and the diff, short."""
        version, rung = answer.get("version_id"), answer.get("rung")
        came = [str(answer["status"])]
        if rung:
            came.append(f"fitted by: {rung}")
        if answer.get("base") and answer["base"] != version:
            came.append(f"made against {answer['base']}")
        named = answer.get("change") or answer.get("conflict") or answer.get("approval") or "-"
        self.line(f"{named:>5}  {who}: {what} → {', '.join(came)}{f', now {version}' if version else ''}")
        self.diff(answer.get("diff") or "")

    def diff(self, text: str) -> None:
        """The changed lines of a diff; a few of them."""
        lines = [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        for line in lines[:DIFF_LINES]:
            self.line(f"           {line}")
        if len(lines) > DIFF_LINES:
            self.line(f"           … {len(lines) - DIFF_LINES} more lines")

    def check(self, name: str, *, ok: bool, found: str) -> None:
        self.line(f"{'ok ' if ok else 'NOT OK'} {name}: {found}")

    def end(self, *, ok: bool) -> None:
        took_s = time.monotonic() - self._began
        print(f"\n{'Everything agrees' if ok else 'SOMETHING DIFFERS'}, after {took_s:.1f} s.", flush=True)
