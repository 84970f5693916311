"""Globs of paths as shells write them, with `{a,b}`; each is anchored where a search begins."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.globs import Glob

MOST = 1000
"""Globs that the braces of one may stand for."""


class NamePatterns:
    """What any of these globs names. `loose`: one without `*` names what is called so at any depth."""

    def __init__(self, patterns: Iterable[str], *, loose: bool = False) -> None:
        """Raises ParameterInvalid."""
        written = [f"/{one.removeprefix('./')}" for pattern in patterns for one in alternatives(pattern)]
        if loose:
            written += [f"/**{one}" for one in written if "*" not in one]
        self.globs = tuple(written)
        self._globs = [Glob(one) for one in written]

    def match(self, path: str, *, directory: bool) -> bool:
        """Whether one of them names this path itself."""
        return any(glob.names(path, directory=directory) for glob in self._globs)


def alternatives(pattern: str) -> list[str]:
    """The globs that one with braces stands for, in order. Raises ParameterInvalid where they are too many."""
    done, open_ = list[str](), [pattern]
    while open_:
        if len(done) + len(open_) > MOST:
            raise ParameterInvalid("pattern", f"its braces stand for more than {MOST} globs")
        one = open_.pop(0)
        braces = _first_braces(one)
        if braces is None:
            done.append(one)
        else:
            before, choices, after = braces
            open_[:0] = [f"{before}{choice}{after}" for choice in choices]
    return done


def _first_braces(text: str) -> tuple[str, list[str], str] | None:
    """What stands before, in and behind the first braces with a comma in them."""
    for begin, sign in enumerate(text):
        if sign != "{":
            continue
        depth, parts = 0, [""]
        for end in range(begin, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                if len(parts) > 1:
                    return text[:begin], parts, text[end + 1 :]
                break
            if text[end] == "," and depth == 1:
                parts.append("")
            elif end > begin:
                parts[-1] += text[end]
    return None
