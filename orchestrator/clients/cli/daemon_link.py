"""A client of the daemon that goes on, in its session, with the daemon that was started after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio import to_thread

from orchestrator.clients.python import FileAccess
from orchestrator.clients.running_daemon import WorkspaceDaemon
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable

T = TypeVar("T")

LOOK_S = 0.5
"""Between two looks for a daemon."""


class DaemonLink:
    """`files`: the connection that was there first; each call after its end makes one of its own.

    A call that was open when the daemon ended is made again, so one that writes names its `request_id`.
    """

    def __init__(self, daemon: WorkspaceDaemon, files: FileAccess, *, agent: str | None, token: str | None) -> None:
        self._daemon, self._files, self._agent, self._token = daemon, files, agent, token
        self._resumed = files.session if agent or token else None  # a person's is not noted by what only looks
        self.session, self.agent, self.workspace = files.session, files.agent, files.workspace

    async def call(self, work: Callable[[FileAccess], Awaitable[T]], *, patience_s: float = 0) -> T:
        """What the work returns; a daemon that is away is waited for as long. Raises DaemonUnreachable, and its own."""
        try:
            return await work(self._files)
        except (DaemonRestarted, DaemonUnreachable):
            until = anyio.current_time() + patience_s
        while True:
            try:
                location = await to_thread.run_sync(self._daemon.running, abandon_on_cancel=True)
                async with FileAccess.connect(
                    self.workspace, agent=self._agent, token=self._token, session=self._resumed, socket=location.socket
                ) as files:
                    return await work(files)
            except (DaemonRestarted, DaemonUnreachable):
                if anyio.current_time() >= until:
                    raise
            await anyio.sleep(LOOK_S)
