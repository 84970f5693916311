"""Starts launchers of commands, by forking a process that has imported all they need: none waits for Python."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio

from orchestrator.subreaper import AT_ONCE, GRACE_S
from orchestrator.workspace import command_launcher

PATIENCE_S = GRACE_S + 5.0
"""What a launcher gets for its own end."""

_PIECE_BYTES = 64 * 1024


class ForkServer:
    """Started with the first command; it ends with this process, and all its launchers with it."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self.pid = 0
        """Its process, once there is one: all that commands start is below it."""
        self._asking = threading.Lock()

    def launch(self, message: bytes) -> LaunchedProcess:
        """Blocking. A launcher, with the command running below it. Raises OSError where that can't be started."""
        control, theirs = socket.socketpair()
        output, write = os.pipe()
        try:
            try:
                self._ask(theirs.fileno(), write)
            finally:
                theirs.close()
                os.close(write)
            control.sendall(message)
            reply = control.recv(command_launcher.REPLY.size, socket.MSG_WAITALL)
            if len(reply) < command_launcher.REPLY.size:
                raise OSError(errno.EAGAIN, "its launcher ended")
            pid, number = command_launcher.REPLY.unpack(reply)
            if number:
                control.recv(1)  # it has ended, and removed what it made
                raise OSError(number, os.strerror(number))
        except BaseException:
            control.close()
            os.close(output)
            raise
        return LaunchedProcess(pid, control, output)

    def _ask(self, *handles: int) -> None:
        """Have it fork, with these descriptors; one that somebody ended is started again."""
        with self._asking:
            if self._channel is not None:
                with suppress(ConnectionError):
                    socket.send_fds(self._channel, (b"\0",), handles)
                    return
            self._channel = self._started()
            socket.send_fds(self._channel, (b"\0",), handles)

    def _started(self) -> socket.socket:
        channel, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                (sys.executable, "-I", "-S", command_launcher.__file__),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        self.pid = process.pid
        weakref.finalize(self, _end, channel, process)
        return channel


def _end(channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
    channel.close()
    process.wait()


class LaunchedProcess:
    """A launcher, with the command below it: it ends once `end` was called, so that its number stays its own."""

    def __init__(self, pid: int, control: socket.socket, output: int) -> None:
        self.pid, self._control, self._output = pid, control, output
        self._read = False
        self.code: int | None = None
        """How the command ended; nothing of it is left then. As subreaper.py has it; negative if the launcher died."""

    async def output(self) -> AsyncIterator[bytes]:
        """Read it once."""
        self._read = True
        with open(self._output, "rb", buffering=0) as output:  # noqa: ASYNC230  # a descriptor has no path
            while True:
                await anyio.wait_readable(output.fileno())
                data = output.read(_PIECE_BYTES)
                if not data:
                    return
                yield data

    async def wait(self) -> int:
        if self.code is None:
            await anyio.wait_readable(self._control)
            with suppress(ConnectionError):
                told = self._control.recv(1)
            self.code = told[0] if told else -signal.SIGKILL
        return self.code

    async def end(self, *, at_once: bool = False) -> None:
        """End it with all that the command started, asked first or not; nothing if it has ended."""
        for number in (AT_ONCE if at_once else signal.SIGTERM, signal.SIGKILL):
            if self.code is not None:
                break
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            with anyio.move_on_after(PATIENCE_S):
                await self.wait()
        self.code = -signal.SIGKILL if self.code is None else self.code
        self._control.close()
        if not self._read:
            self._read = True
            os.close(self._output)
