"""Commands that agents run: started confined, and ended with all they start."""

from __future__ import annotations

import marshal
import os
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from anyio import to_thread

from orchestrator.ports.commands import CommandSpec
from orchestrator.workspace import command_launcher, namespaces
from orchestrator.workspace.command_confinement import CommandConfinement, Confinement, Prepared
from orchestrator.workspace.fork_server import ForkServer, LaunchedProcess


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
        self._server = ForkServer()
        self._confinement, self._starting, self._running = confinement, 0, list[ConfinedCommand]()
        self._confine = CommandConfinement(confinement, workspace=workspace, own=own, prefix=self._prefix)
        with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:  # without descriptors: the next start
            for entry in entries:
                if entry.name.startswith(self._prefix) and entry.is_dir(follow_symlinks=False):
                    command_launcher.remove(entry.path)

    @property
    def health(self) -> str:
        return self._confinement.shown

    @property
    def mounts_layers(self) -> bool:
        """Whether a command may have `CommandSpec.layers`, where overlays work."""
        return self._confinement.by == "namespaces"

    async def start(self, spec: CommandSpec) -> ConfinedCommand:
        self._starting += 1
        try:
            command = await to_thread.run_sync(self._started, spec)
        finally:
            self._starting -= 1
        self._running = [other for other in self._running if other.runs] + [command]
        return command

    def _started(self, spec: CommandSpec) -> ConfinedCommand:
        """Blocking."""
        if spec.cache is not None and self._caches is not None:
            spec = _with_caches(spec, f"{self._caches}/{spec.cache}")
        prepared = self._confine.prepare(spec)
        not_kept = [*prepared.not_kept]
        if os.getuid() == 0 and not (self._confinement.by == "namespaces" and namespaces.bounds_processes()):
            not_kept.append("any number of processes, as root has no limit")
        confined_by = self.health + (f"; not kept from it: {', '.join(not_kept)}" if not_kept else "")
        try:
            process = self._server.launch(_message(prepared, spec))
        except BaseException:
            if prepared.temporary is not None:
                command_launcher.remove(prepared.temporary)  # the launcher may not have come to it
            raise
        return ConfinedCommand(process, confined_by)

    def holds(self, pid: int) -> bool:
        """Whether a process is one of a running command's, or may have been: of one that ended, nobody can tell.

        What they leave behind comes to their launcher, and all launchers are below the fork server.
        """
        some_run = self._starting > 0 or any(command.runs for command in self._running)
        while some_run and pid > 1:
            if pid == self._server.pid:
                return True
            try:
                pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                return True
        return False


class ConfinedCommand:
    """See `ports.commands.RunningCommand`."""

    def __init__(self, process: LaunchedProcess, confined_by: str) -> None:
        self._process, self.confined_by = process, confined_by
        self.output, self.end = process.output, process.end

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.code is None

    async def wait(self) -> int:
        """As shells have it, 128 and a signal's number mean that signal: bubblewrap and the launcher tell no more."""
        code = await self._process.wait()
        return 128 - code if 128 < code <= 128 + signal.NSIG else code


def _with_caches(spec: CommandSpec, folder: str) -> CommandSpec:
    """With folders of its own where tools write what they fetch and build: those of the home are read-only to it.

    Without the network what the home has of others' code is more use than an empty folder.
    """
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    fetched = {"CARGO_HOME": f"{folder}/cargo", "GOMODCACHE": f"{folder}/go-mod"} if spec.network else {}
    caches = {"XDG_CACHE_HOME": folder, "GOCACHE": f"{folder}/go-build", "npm_config_cache": f"{folder}/npm", **fetched}
    return msgspec.structs.replace(spec, writable=(*spec.writable, folder), environment={**caches, **spec.environment})


def _message(prepared: Prepared, spec: CommandSpec) -> bytes:
    """For the launcher."""
    start = {
        "argv": list(prepared.argv),
        "cwd": spec.cwd,
        "environment": {**spec.environment, "TMPDIR": prepared.temporary_seen},
        "processes": spec.processes,
        "file_bytes": spec.file_bytes,
        "landlock": prepared.landlock,
    }
    return marshal.dumps((prepared.temporary, prepared.mounts, start))
