"""Runs a policy's check command in a scratch copy of the tree, with limits on time and output."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from orchestrator import supervised_process
from orchestrator.core.errors import PathError, escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Checks
from orchestrator.ports.reviewers import CheckReport
from orchestrator.ports.workspace import Workspace

MOST_TREE_BYTES = 256 * 1024 * 1024
MOST_FILE_BYTES = 50 * 1024 * 1024
KEPT_OUTPUT = 4000
"""Bytes of what it printed last."""

ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""What a command is given of the daemon's own; no token, no key."""


class ScratchChecker:
    """Runs checks below a folder of the daemon's own; each in a folder that goes with it."""

    def __init__(self, workspace: Workspace, folder: Path, environment: dict[str, str]) -> None:
        self._workspace, self._folder = workspace, folder
        self._environment = {name: environment[name] for name in ENVIRONMENT if name in environment}

    async def check(
        self, checks: Checks, path: WorkspacePath, data: bytes, others: Sequence[WorkspacePath]
    ) -> CheckReport:
        scratch = Path(await to_thread.run_sync(partial(tempfile.mkdtemp, prefix="check-", dir=self._folder)))
        try:
            copied = others if checks.scope == "tree" else ()
            if not await to_thread.run_sync(self._fill, scratch, path, data, copied):
                return CheckReport(False, f"the tree is larger than {MOST_TREE_BYTES >> 20} MB: set scope = 'file'")
            command = [argument.replace("{path}", path) for argument in checks.command]
            return await self._run(command, scratch, checks.timeout_s)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(partial(shutil.rmtree, scratch, ignore_errors=True))

    def _fill(self, scratch: Path, path: WorkspacePath, data: bytes, others: Sequence[WorkspacePath]) -> bool:
        """Plain files only, so that nothing in the copy leads out of it; False where they are too large."""
        left = MOST_TREE_BYTES - len(data)
        _put(scratch / path, data, None)
        for other in others:
            try:
                read = self._workspace.read(other, most=MOST_FILE_BYTES)
            except PathError:
                continue  # gone since, or not to be read: the check sees the tree without it
            left -= len(read.data)
            if left < 0:
                return False
            _put(scratch / other, read.data, read.stat.mode)
        return True

    async def _run(self, command: list[str], scratch: Path, timeout_s: float) -> CheckReport:
        try:
            process = await supervised_process.start(
                command, cwd=scratch, env=self._environment, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
            )
        except OSError as error:
            return CheckReport(False, f"{escaped(command[0])} can't be started: {error.strerror}")
        tail = bytearray()
        try:
            with anyio.move_on_after(timeout_s) as scope:
                if process.stdout is not None:
                    async for piece in process.stdout:
                        tail += piece
                        del tail[:-KEPT_OUTPUT]
                await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await supervised_process.end(process)
        output = escaped(bytes(tail).decode("utf-8", "replace").strip())
        if scope.cancelled_caught:
            return CheckReport(False, f"not done in {timeout_s} s; its output: {output}")
        code = process.returncode
        return CheckReport(code == 0, f"exit code {code}; its output: {output}")


def _put(target: Path, data: bytes, mode: int | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    if mode is not None:
        target.chmod(mode & 0o777 | 0o600)
