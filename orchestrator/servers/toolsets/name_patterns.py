"""Globs of paths as shells write them, with `{a,b}`; each is anchored where a search begins."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.core.braces import alternatives
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.globs import Glob


class NamePatterns:
    """What any of these globs names. `loose`: one without `*` names what is called so at any depth."""

    def __init__(self, patterns: Iterable[str], *, loose: bool = False) -> None:
        """Raises ParameterInvalid."""
        meant = alternatives(patterns)
        if meant is None:
            raise ParameterInvalid("pattern", "its braces stand for too many globs")
        written = [f"/{one.removeprefix('./')}" for one in meant]
        if loose:
            written += [f"/**{one}" for one in written if "*" not in one]
        self.globs = tuple(written)
        self._globs = [Glob(one) for one in written]

    def match(self, path: str, *, directory: bool) -> bool:
        """Whether one of them names this path itself."""
        return any(glob.names(path, directory=directory) for glob in self._globs)
