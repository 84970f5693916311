"""The git repository around a workspace: contents of its last commit, and new commits, through git's own commands."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from orchestrator.core.errors import CallerError, OperatorError, escaped

NONE_YET = "0" * 40
"""In the place of a commit: the branch has none."""

UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
"""In git's directory while something is under way whose commit git makes itself."""

FILE, PROGRAM = "100644", "100755"
_OWN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Variables that a hook of git's has, and that would lead elsewhere."""


class GitRepositoryMissing(
    CallerError, code="git_repository_missing", hint="Run `git init` in it, or name another --workspace."
):
    """No git repository holds the workspace, or git is not installed."""


class GitBusy(CallerError, code="git_busy", hint="Finish or abort it with git, then try again."):
    """A merge, a rebase or the like is under way in the repository."""


class GitFailed(OperatorError, code="git_failed", hint="Do what git says, then try again; nothing was committed."):
    """A command of git's failed."""


class Blob(NamedTuple):
    """A file of a commit: its mode, and its content's name in the repository."""

    mode: str
    name: str


class Author(NamedTuple):
    """Whom a commit names as its author."""

    name: str
    email: str


class GitRepository:
    """One repository. Paths are relative to the workspace, which may be a folder in it."""

    def __init__(self, top: Path, prefix: str, git_dir: Path) -> None:
        self._top, self._prefix, self._git_dir = top, prefix, git_dir
        self.workspace = top / prefix
        self.head = self._head()

    @classmethod
    def around(cls, workspace: str) -> Self:
        """The repository that holds a workspace. Raises GitRepositoryMissing, GitBusy."""
        asked = ("rev-parse", "--show-toplevel", "--show-prefix", "--absolute-git-dir")
        try:
            done = _run(Path(workspace), *asked)
        except FileNotFoundError as error:
            raise GitRepositoryMissing("git is not installed", hint="Install git.") from error
        if done.returncode != 0:
            raise GitRepositoryMissing(f"{workspace} is in no git repository: {_said(done)}")
        top, prefix, git_dir = os.fsdecode(done.stdout).split("\n")[:3]
        repository = cls(Path(top), prefix, Path(git_dir))
        for name in UNFINISHED:
            if (repository._git_dir / name).exists():
                raise GitBusy(f"the repository has an unfinished {name.split('_')[0].split('-')[0].lower()}")
        return repository

    # --- looking ------------------------------------------------------------------------

    def committed(self, path: str) -> Blob | None:
        """A file of the last commit; None where it has none, or a link or another repository there."""
        if self.head == NONE_YET:
            return None
        for row in self._listed("ls-tree", self.head, path=path):
            mode, kind, name = row.partition("\t")[0].split()
            if kind == "blob" and mode in (FILE, PROGRAM):
                return Blob(mode, name)
        return None

    def content(self, path: str, blob: Blob) -> bytes:
        """A content as git would check it out at a path."""
        return self._git("cat-file", "--filters", f"--path={self._of(path)}", blob.name)

    def ignores(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of the paths that git ignores and does not track."""
        given = b"\0".join(os.fsencode(self._of(path)) for path in paths)
        done = _run(self._top, "check-ignore", "-z", "--stdin", data=given)
        if done.returncode not in (0, 1):
            raise GitFailed(f"git check-ignore: {_said(done)}")
        return frozenset(name.removeprefix(self._prefix) for name in os.fsdecode(done.stdout).split("\0") if name)

    def staged(self, path: str) -> bool:
        """Whether the index has something else for a path than the last commit."""
        return self._in_index(path) != self.committed(path)

    # --- committing ---------------------------------------------------------------------

    def commit(self, files: Mapping[str, tuple[str, bytes] | None], message: str, author: Author) -> str:
        """The last commit with these files changed, as the branch's new one; its name.

        `files`: of each path its mode and content, or None where it is deleted. No hook of git's is run, and neither
        a file nor the index is touched. Raises GitFailed, also where the branch has moved meanwhile.
        """
        with tempfile.TemporaryDirectory(prefix="orchestrator-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            if self.head != NONE_YET:
                self._git("read-tree", self.head, env=index)
            rows = [self._index_row(path, file) for path, file in files.items()]
            self._git("update-index", "-z", "--index-info", data=b"".join(rows), env=index)
            tree = os.fsdecode(self._git("write-tree", env=index)).strip()
        parent = ("-p", self.head) if self.head != NONE_YET else ()
        signed = ("-S",) if self._is_signing() else ()
        named = {"GIT_AUTHOR_NAME": author.name, "GIT_AUTHOR_EMAIL": author.email}
        made = self._git("commit-tree", tree, *parent, *signed, "-F", "-", data=message.encode(), env=named)
        commit = os.fsdecode(made).strip()
        self._git("update-ref", "-m", f"orchestrator: {message.splitlines()[0]}", "HEAD", commit, self.head)
        self.head = commit
        return commit

    def follow_in_index(self, paths: Sequence[str]) -> None:
        """The index has for these paths what the last commit has. Raises GitFailed."""
        rows = []
        for path in paths:
            blob = self.committed(path)
            rows.append(_row(blob.mode if blob else "0", blob.name if blob else NONE_YET, self._of(path)))
        self._git("update-index", "-z", "--index-info", data=b"".join(rows))

    def _index_row(self, path: str, file: tuple[str, bytes] | None) -> bytes:
        if file is None:
            return _row("0", NONE_YET, self._of(path))
        mode, data = file
        name = self._git("hash-object", "-w", "--stdin", f"--path={self._of(path)}", data=data)
        return _row(mode, os.fsdecode(name).strip(), self._of(path))

    def _in_index(self, path: str) -> Blob | None:
        rows = self._listed("ls-files", "-s", path=path)
        if len(rows) != 1:  # none, or the sides of a clash
            return None
        mode, name, _ = rows[0].partition("\t")[0].split()
        return Blob(mode, name)

    def _is_signing(self) -> bool:
        return _run(self._top, "config", "--type=bool", "--get", "commit.gpgsign").stdout.strip() == b"true"

    def _head(self) -> str:
        done = _run(self._top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return os.fsdecode(done.stdout).strip() or NONE_YET

    def _of(self, path: str) -> str:
        return f"{self._prefix}{path}"

    def _listed(self, *command: str, path: str) -> list[str]:
        said = self._git(*command, "-z", "--", self._of(path), env={"GIT_LITERAL_PATHSPECS": "1"})
        return os.fsdecode(said).split("\0")[:-1]

    def _git(self, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        done = _run(self._top, *arguments, data=data, env=env)
        if done.returncode != 0:
            raise GitFailed(f"git {arguments[0]}: {_said(done)}")
        return done.stdout


def merged(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Three contents as `git merge-file` merges them; None where they clash, or are no text."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-") as folder:
        names = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for name, content in zip(names, (ours, base, theirs), strict=True):
            name.write_bytes(content)
        done = _run(Path(folder), "merge-file", "-p", *map(str, names))
        return done.stdout if done.returncode == 0 else None


def _row(mode: str, name: str, path: str) -> bytes:
    return os.fsencode(f"{mode} {name}\t{path}\0")


def _run(
    folder: Path, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _OWN} | {**(env or {})}
    return subprocess.run(
        ("git", *arguments), cwd=folder, input=data, env=environment, capture_output=True, check=False
    )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return escaped(" ".join(os.fsdecode(done.stderr).split()))[:500]
