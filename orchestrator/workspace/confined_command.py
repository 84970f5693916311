"""Commands that agents run: started confined, and ended with all they start."""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import Process

from orchestrator import supervised_process
from orchestrator.ports.commands import CommandSpec
from orchestrator.workspace import command_launcher
from orchestrator.workspace.command_confinement import CommandConfinement, Confinement, Prepared


class ConfinedCommands:
    """See `ports.commands.CommandRunner`.

    `own`: the daemon's own files, closed to every command. `name`: of TMPDIRs; what killed launchers left goes now.
    `caches`: the folder of the caches that commands keep from one to the next.
    """

    def __init__(
        self, confinement: Confinement, *, workspace: str, own: Sequence[str], name: str, caches: str | None = None
    ) -> None:
        self._caches = caches
        self._prefix = f"orchestrator-{name}-"
        self._confinement, self._running = confinement, list[Process]()
        self._confine = CommandConfinement(confinement, workspace=workspace, own=own, prefix=self._prefix)
        with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:  # without descriptors: the next start
            for entry in entries:
                if entry.name.startswith(self._prefix) and entry.is_dir(follow_symlinks=False):
                    command_launcher.remove(entry.path)

    @property
    def health(self) -> str:
        return self._confinement.shown

    async def start(self, spec: CommandSpec) -> ConfinedCommand:
        if spec.cache is not None and self._caches is not None:
            spec = await to_thread.run_sync(_with_caches, spec, f"{self._caches}/{spec.cache}")
        prepared = await to_thread.run_sync(partial(self._confine.prepare, spec))
        not_kept = [*prepared.not_kept]
        if os.getuid() == 0:
            not_kept.append("any number of processes, as root has no limit")
        confined_by = self.health + (f"; not kept from it: {', '.join(not_kept)}" if not_kept else "")
        try:
            process = await self._launched(_message(prepared, spec))
        except BaseException:
            if prepared.temporary is not None:
                command_launcher.remove(prepared.temporary)  # the launcher may not have come to it
            raise
        return ConfinedCommand(process, confined_by)

    async def _launched(self, message: bytes) -> Process:
        """The launcher, with the command running below it. Raises OSError where that can't be started."""
        read, write = os.pipe()
        try:
            process = await anyio.open_process(
                (sys.executable, "-I", "-S", command_launcher.__file__, str(os.getpid()), str(write)),
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
                pass_fds=(write,),
            )
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        self._running = [other for other in self._running if other.returncode is None] + [process]
        try:
            assert process.stdin is not None
            with suppress(anyio.BrokenResourceError):  # it was ended already
                await process.stdin.send(message)
            await process.stdin.aclose()
            number, _, text = (await to_thread.run_sync(_all_of, read)).decode().partition(" ")
            if number:
                raise OSError(int(number), text)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await supervised_process.end(process)
            raise
        return process

    def holds(self, pid: int) -> bool:
        """Whether a process is one of a running command's, or may have been: of one that ended, nobody can tell.

        What they leave behind comes to their launcher.
        """
        launchers = {process.pid for process in self._running if process.returncode is None}
        while launchers and pid > 1:
            if pid in launchers:
                return True
            try:
                pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                return True
        return False


class ConfinedCommand:
    """See `ports.commands.RunningCommand`."""

    def __init__(self, process: Process, confined_by: str) -> None:
        self._process, self.confined_by = process, confined_by
        self._read = False

    @property
    def pid(self) -> int:
        return self._process.pid

    async def output(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        self._read = True
        async with self._process.stdout as stdout:
            async for piece in stdout:
                yield piece

    async def wait(self) -> int:
        """As shells have it, 128 and a signal's number mean that signal: bubblewrap and the launcher tell no more."""
        code = await self._process.wait()
        return 128 - code if 128 < code <= 128 + signal.NSIG else code

    async def end(self) -> None:
        await supervised_process.terminate(self._process)
        if not self._read:
            await self._process.aclose()


def _with_caches(spec: CommandSpec, folder: str) -> CommandSpec:
    """With folders of its own where tools write what they fetch and build: those of the home are read-only to it.

    Without the network what the home has of others' code is more use than an empty folder.
    """
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    fetched = {"CARGO_HOME": f"{folder}/cargo", "GOMODCACHE": f"{folder}/go-mod"} if spec.network else {}
    caches = {"XDG_CACHE_HOME": folder, "GOCACHE": f"{folder}/go-build", "npm_config_cache": f"{folder}/npm", **fetched}
    return msgspec.structs.replace(spec, writable=(*spec.writable, folder), environment={**caches, **spec.environment})


def _message(prepared: Prepared, spec: CommandSpec) -> bytes:
    """For the launcher's standard input."""
    start = {
        "argv": list(prepared.argv),
        "cwd": spec.cwd,
        "environment": {**spec.environment, "TMPDIR": prepared.temporary_seen},
        "processes": spec.processes,
        "file_bytes": spec.file_bytes,
        "landlock": prepared.landlock,
    }
    return marshal.dumps((prepared.temporary, prepared.mounts, start))


def _all_of(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()
