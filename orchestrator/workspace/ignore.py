"""What listings, searches and scans leave out: built-in names, .gitignore files, .orchestratorignore."""

from __future__ import annotations

from pathspec import GitIgnoreSpec

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import WorkspacePath
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


_UNREAD = object()


class IgnoreRules:
    """See `ports.Ignore`. Rule files are read once, and again after `refresh`."""

    def __init__(self, confinement: Confinement) -> None:
        self._at = confinement
        self._files: dict[WorkspacePath, GitIgnoreSpec | None] = {}
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
        """The last rule that speaks of the path decides; deeper files speak later."""
        verdict: bool | None = None
        for folder in _upwards(above):
            relative = path[len(folder) + 1 :] if folder else path
            for name in RULE_FILES:
                rules = self._rules(WorkspacePath(f"{folder}/{name}" if folder else name))
                if rules is not None:
                    result = rules.check_file(relative + "/" if directory else relative)
                    if result.include is not None:
                        verdict = result.include
        if verdict is None:
            rules = self._rules(EXCLUDE_FILE)
            if rules is not None:
                verdict = rules.check_file(path + "/" if directory else path).include
        return bool(verdict)

    def _rules(self, path: WorkspacePath) -> GitIgnoreSpec | None:
        known = self._files.get(path, _UNREAD)
        if known is not _UNREAD:
            return known  # type: ignore[return-value]  # the sentinel is ruled out above
        try:
            with self._at.parent(path) as (parent, name), self._at.regular(parent, name, path) as (handle, _):
                data = self._at.disk.read(handle, MOST_RULE_BYTES, 0)
        except OrchestratorError:
            self._files[path] = None
            return None
        lines = data.decode("utf-8", "replace").splitlines()
        rules = GitIgnoreSpec.from_lines(line for line in lines if line.strip())
        found = rules if len(rules) else None
        self._files[path] = found
        return found


def _upwards(folder: str) -> list[str]:
    """The root first, then each directory down to `folder`."""
    folders = [""]
    if folder:
        parts = folder.split("/")
        folders += ["/".join(parts[: at + 1]) for at in range(len(parts))]
    return folders
