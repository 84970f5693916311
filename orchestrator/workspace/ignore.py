"""What listings, searches and scans leave out: built-in names, .gitignore files, .orchestratorignore."""

from __future__ import annotations

import re
from contextlib import suppress

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.match import Pattern
from orchestrator.workspace.confine import Confinement

BUILT_IN = frozenset((".git", ".hg", ".svn", ".jj"))
TEMP_PREFIX = ".orchestrator-"
TEMP_SUFFIX = ".tmp"
RULE_FILES = (".gitignore", ".orchestratorignore")
EXCLUDE_FILE = WorkspacePath(".git/info/exclude")
MOST_RULE_BYTES = 1024 * 1024


def is_temp(name: str) -> bool:
    """Whether a name is one of our temporary files."""
    return name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX)


Rules = tuple[Pattern, ...]
_TRAILING = re.compile(r"(?<!\\) +\Z")


class IgnoreRules:
    """See `ports.Ignore`. Rule files are read once, and again after `refresh`."""

    def __init__(self, confinement: Confinement) -> None:
        self._at = confinement
        self._files: dict[WorkspacePath, Rules] = {}
        self._verdicts: dict[tuple[str, bool], bool] = {}

    def refresh(self) -> None:
        """Forget what was concluded; the next question looks at the rule files again."""
        self._verdicts.clear()
        self._files.clear()

    def ignored(self, path: WorkspacePath, *, directory: bool) -> bool:
        """Parents first: what is in an ignored directory is ignored, whatever re-includes it."""
        if path == ".":
            return False
        above, _, name = path.rpartition("/")
        if name in BUILT_IN or is_temp(name):
            return True
        if above and self._directory_ignored(above):
            return True
        return self._matches(above, path, directory=directory)

    def _directory_ignored(self, path: str) -> bool:
        key = (path, True)
        known = self._verdicts.get(key)
        if known is None:
            if len(self._verdicts) > 200_000:
                self._verdicts.clear()
            known = self._verdicts[key] = self.ignored(WorkspacePath(path), directory=True)
        return known

    def _matches(self, above: str, path: str, *, directory: bool) -> bool:
        """The last rule that names the path decides; deeper files have the last word."""
        for folder in reversed(_upwards(above)):
            relative = path[len(folder) + 1 :] if folder else path
            for name in RULE_FILES:
                rules = self._rules(WorkspacePath(f"{folder}/{name}" if folder else name))
                said = _said(rules, relative, directory=directory)
                if said is not None:
                    return said
        return bool(_said(self._rules(EXCLUDE_FILE), path, directory=directory))

    def _rules(self, path: WorkspacePath) -> Rules:
        known = self._files.get(path)
        if known is not None:
            return known
        try:
            with self._at.parent(path) as (parent, name), self._at.regular(parent, name, path) as (handle, _):
                data = self._at.disk.read(handle, MOST_RULE_BYTES, 0)
        except OrchestratorError:
            data = b""
        rules = self._files[path] = _compiled(data.decode("utf-8", "replace"))
        return rules


def _compiled(text: str) -> Rules:
    """The patterns of a rule file, the last first; what git could not read either is passed over."""
    patterns = []
    for raw in text.replace("\r\n", "\n").split("\n"):
        line = _TRAILING.sub("", raw)
        if line and not line.startswith("#"):
            with suppress(ValueError):
                patterns.append(Pattern(line))
    return tuple(reversed(patterns))


def _said(rules: Rules, path: str, *, directory: bool) -> bool | None:
    """True: ignored; False: excepted; None: not named."""
    for pattern in rules:
        if pattern.names(path, directory=directory):
            return not pattern.exception
    return None


def _upwards(folder: str) -> list[str]:
    """The root first, then each directory down to `folder`."""
    folders = [""]
    if folder:
        parts = folder.split("/")
        folders += ["/".join(parts[: at + 1]) for at in range(len(parts))]
    return folders
