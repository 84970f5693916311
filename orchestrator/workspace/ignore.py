"""The ignore rules of listings, searches and scans: built-in names, .gitignore, .orchestratorignore."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext

import msgspec

from orchestrator.core.content import Signature
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.ignore_file import MOST_BYTES, IgnoreFile, IgnoreFileOverBudget, as_bytes
from orchestrator.workspace.confine import Confinement
from orchestrator.workspace.disk import signature_of

BUILT_IN = frozenset((".git", ".hg", ".svn", ".jj"))
TEMP_PREFIX = ".orchestrator-"
TEMP_SUFFIX = ".tmp"
RULE_FILES = (".gitignore", ".orchestratorignore")  # the later one has the last word
EXCLUDE_DIRECTORY = WorkspacePath(".git/info")
MOST_WILDCARD_BYTES = 1024 * 1024
"""The rules with wildcards of all ignore files of a workspace together."""
MOST_FOLDERS = 200_000
FRESH_S = 0.5
"""How long a directory's rule files are taken for unchanged without another look."""


def is_temp(name: str) -> bool:
    """Whether a name is one of our temporary files."""
    return name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX)


class Folder(msgspec.Struct, frozen=True):
    """One directory: the rules that hold in it, strongest first, or that it is ignored altogether."""

    prefix: str
    rules: tuple[tuple[int, IgnoreFile], ...]
    excluded: bool
    turn: int
    looked_s: float

    def ignores(self, name: str, *, directory: bool) -> bool:
        """Whether a name in this directory is left out."""
        if self.excluded or name in BUILT_IN or is_temp(name):
            return True
        if not self.rules:
            return False
        name = as_bytes(name)
        path = self.prefix + name
        for start, rules in self.rules:
            verdict = rules.verdict(path[start:], name, directory=directory)
            if verdict is not None:
                return verdict
        return False


class IgnoreRules:
    """See `ports.Ignore`. Rule files are read again when their signature changes. Thread-safe.

    Each directory's are looked at once in `fresh_s`, and after `refresh`.
    """

    def __init__(
        self, confinement: Confinement, *, now_s: Callable[[], float] = time.monotonic, fresh_s: float = FRESH_S
    ) -> None:
        self._at, self._now_s, self._fresh_s = confinement, now_s, fresh_s
        self._folders: dict[str, Folder] = {}
        self._files: dict[str, tuple[Signature | None, IgnoreFile | None]] = {}
        self._over: dict[str, str] = {}  # files that are not used, and why
        self._wildcard_bytes = 0
        self._turn = 0  # counts what was found changed; a folder of an earlier turn is built anew

    def refresh(self) -> None:
        """Let the next question of each directory look at its rule files."""
        self._folders.clear()

    def over_budget(self) -> tuple[tuple[str, str], ...]:
        """The ignore files that are not used because comparing names with them would take too long, and why."""
        return tuple(sorted(self._over.items()))

    def unwatched(self) -> Signature | None:
        """Of `.git/info/exclude`."""
        self._read(EXCLUDE_DIRECTORY, "exclude")
        return self._files.get(f"{EXCLUDE_DIRECTORY}/exclude", (None, None))[0]

    def ignored(self, path: WorkspacePath, *, directory: bool) -> bool:
        """Parents first: what is in an ignored directory is ignored, whatever re-includes it."""
        if path == ".":
            return False
        above, _, name = path.rpartition("/")
        return self.folder(above).ignores(name, directory=directory)

    def folder(self, path: str, handle: int | None = None) -> Folder:
        """A directory's rules, for asking about many names in it; `""` is the root. `handle`: if it is open."""
        known = self._folders.get(path)
        now_s = self._now_s()
        if known is not None and known.turn == self._turn and now_s - known.looked_s < self._fresh_s:
            return known
        if path:
            above, _, name = path.rpartition("/")
            outer = self.folder(above)
            rules = outer.rules
            excluded = outer.ignores(name, directory=True)
        else:
            exclude = self._read(EXCLUDE_DIRECTORY, "exclude")
            rules = ((0, exclude),) if exclude else ()
            excluded = False
        prefix = as_bytes(path) + "/" if path else ""
        if not excluded:
            for name in RULE_FILES:
                own = self._read(WorkspacePath(path or "."), name, handle)
                rules = ((len(prefix), own), *rules) if own else rules
        if len(self._folders) >= MOST_FOLDERS:
            self._folders.clear()
        folder = self._folders[path] = Folder(prefix, rules, excluded, self._turn, now_s)
        return folder

    def _read(self, directory: WorkspacePath, name: str, handle: int | None = None) -> IgnoreFile | None:
        """A rule file, compiled; None for a missing or empty one, or one that is not a regular file of ours."""
        key = name if directory == "." else f"{directory}/{name}"
        signature, known = self._files.get(key, (None, None))
        try:
            with self._at.directory(directory) if handle is None else nullcontext(handle) as at:
                found = signature_of(self._at.disk.stat_at(at, name))
                if found == signature:
                    return known
                with self._at.regular(at, name, WorkspacePath(key)) as (file, opened):
                    data = self._at.disk.read(file, MOST_BYTES + 1, 0)
                    found = signature_of(opened)
        except (OrchestratorError, OSError):
            if key in self._files:
                self._forget(key)
                self._turn += 1
            return None
        self._forget(key)
        self._turn += 1
        rules = self._compiled(key, data)
        self._files[key] = found, rules
        return rules

    def _forget(self, key: str) -> None:
        _, rules = self._files.pop(key, (None, None))
        self._over.pop(key, None)
        if rules is not None:
            self._wildcard_bytes -= rules.wildcard_bytes

    def _compiled(self, key: str, data: bytes) -> IgnoreFile | None:
        try:
            rules = IgnoreFile(data)
            if self._wildcard_bytes + rules.wildcard_bytes > MOST_WILDCARD_BYTES:
                raise IgnoreFileOverBudget(
                    f"with it, rules with wildcards would hold more than {MOST_WILDCARD_BYTES:,} bytes in all"
                )
        except IgnoreFileOverBudget as error:
            self._over[key] = str(error)
            return None
        self._wildcard_bytes += rules.wildcard_bytes
        return rules
