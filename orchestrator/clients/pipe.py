"""The stdio door's pipe: the client's lines to the daemon and back, across the daemon's restarts.

One thread reads the client, one the daemon; `_state` guards what they share. The reader of the
daemon owns the link: it alone takes it down, reconnects, and puts a new one up.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from orchestrator.clients import frames
from orchestrator.core.errors import DaemonUnreachable, OrchestratorError

MAX_LINE_BYTES = 16 * 1024 * 1024
"""As in api/framing.py; a longer line is passed on in pieces, for the daemon to refuse."""

RECONNECT_S = 30.0
PAUSE_S = 0.1
REPLAY_TIMEOUT_S = 30.0
DRAIN_S = 60.0
"""A call may wait 50 s for a person; its answer is worth as long once the client has closed its side."""


class Link(NamedTuple):
    """A connection past its preamble."""

    socket: socket.socket
    lines: BinaryIO
    session: str

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


class StillUnreachable(Exception):
    """This try failed; another may not."""


Dial = Callable[[str | None], Link]
"""Connects, resuming a session. Raises StillUnreachable or OSError to be tried again, OrchestratorError to stop."""


class Pipe:
    """Joins the client's stdin and stdout to the daemon until the client closes its side."""

    def __init__(self, link: Link, dial: Dial, client_in: BinaryIO, client_out: BinaryIO) -> None:
        self._dial, self._in, self._out = dial, client_in, client_out
        self._state = threading.Condition()
        self._writing = threading.Lock()
        self._link: Link | None = link
        self._session = link.session
        self._trouble: OrchestratorError | None = None  # why there is no link and nobody seeks one
        self._closing = False
        self._handshake: list[bytes] = []  # the 2025 eras' `initialize` and `notifications/initialized`
        self._handshake_id: frames.Id | None = None
        self._open: dict[frames.Id, frames.Call] = {}
        self._asked: set[frames.Id] = set()  # the daemon's questions that the client has not answered

    def run(self) -> None:
        """Returns when the client has closed its side and the daemon has said all it had to say."""
        reader = threading.Thread(target=self._read_daemon, name="daemon", daemon=True)
        reader.start()
        while line := self._in.readline(MAX_LINE_BYTES):
            link = self._send(line)
            while not line.endswith(b"\n") and (line := self._in.readline(MAX_LINE_BYTES)):
                _pass_on(link, line)
        with self._state:
            self._closing = True
            self._state.notify_all()
            if self._link is None:
                return
            _shut(self._link.socket, socket.SHUT_WR)
        reader.join(DRAIN_S)

    # --- from the client -------------------------------------------------------------

    def _send(self, line: bytes) -> Link | None:
        """Pass a line on, or answer it where no daemon is to be had. Returns the link that took it."""
        said = frames.said(line)
        with self._state:
            self._await_link(ask=said.call is not None)
            link, trouble = self._link, self._trouble
            if not self._noted(said, there=link is not None):
                return link
        if link is not None:
            _pass_on(link, said.line)
        elif said.call is not None and trouble is not None:
            self._say(frames.failed(said.call, trouble))
        return link

    def _await_link(self, *, ask: bool) -> None:
        """Wait until there is a link, or known to be none. `ask`: have it tried once more."""
        if ask and self._link is None and self._trouble is not None:
            self._trouble = None
            self._state.notify_all()
        self._state.wait_for(lambda: self._link is not None or self._trouble is not None)

    def _noted(self, said: frames.Said, *, there: bool) -> bool:
        """Keep of a line what a restart needs. False: it is meant for a daemon that is gone."""
        match said.kind:
            case "initialize" if there:
                self._handshake, self._handshake_id = [said.line], said.id
            case "initialized" if self._handshake:
                self._handshake[1:] = [said.line]
            case "cancelled" if said.id is not None:
                self._open.pop(said.id, None)
            case "reply" if said.id is not None:
                if said.id not in self._asked:
                    return False
                self._asked.discard(said.id)
        if there and said.call is not None:
            self._open[said.call.id] = said.call
        return True

    # --- from the daemon -------------------------------------------------------------

    def _read_daemon(self) -> None:
        patience_s = RECONNECT_S
        while True:
            link = self._link
            if link is not None:
                self._pump(link)
                with self._state:
                    self._link = None
                link.close()
                if self._closing:
                    return
                patience_s = RECONNECT_S
            else:
                with self._state:
                    self._state.wait_for(lambda: self._trouble is None or self._closing)
                    if self._closing:
                        return
                patience_s = 0.0
            self._reconnect(patience_s)

    def _pump(self, link: Link) -> None:
        try:
            while (line := link.lines.readline()).endswith(b"\n"):
                self._hear(line)
        except OSError:
            pass  # the same as its end

    def _hear(self, line: bytes) -> None:
        heard = frames.heard(line)
        with self._state:
            if heard.id is not None and heard.kind == "reply":
                self._open.pop(heard.id, None)
            elif heard.id is not None and heard.kind == "request":
                self._asked.add(heard.id)
        self._say(line)

    def _reconnect(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            trouble: OrchestratorError
            try:
                link = self._dial(self._session)
                try:
                    self._replay(link)
                except BaseException:
                    link.close()
                    raise
            except (OSError, StillUnreachable) as error:
                trouble = DaemonUnreachable(f"the daemon is gone: {error}")
            except OrchestratorError as error:
                trouble, deadline = error, 0.0
            else:
                self._put_up(link)
                return
            with self._state:
                if self._state.wait_for(lambda: self._closing, PAUSE_S) or time.monotonic() >= deadline:
                    break
        self._give_up(trouble)

    def _replay(self, link: Link) -> None:
        """Bring a new connection to where the client believes it is. The client sees none of it."""
        with self._state:
            handshake, id = list(self._handshake), self._handshake_id
            unanswered = id in self._open
        if not handshake:
            return
        link.socket.settimeout(REPLAY_TIMEOUT_S)
        link.socket.sendall(handshake[0])
        while True:
            line = link.lines.readline()
            if not line.endswith(b"\n"):
                raise ConnectionResetError("the daemon closed the connection during the handshake")
            if frames.heard(line) == frames.Heard("reply", id):
                break
        if unanswered:
            self._hear(line)
        for later in handshake[1:]:
            link.socket.sendall(later)
        link.socket.settimeout(None)

    def _put_up(self, link: Link) -> None:
        with self._state:
            calls, asked = list(self._open.values()), list(self._asked)
            self._open.clear()
            self._asked.clear()
            self._link, self._session = link, link.session
            self._state.notify_all()
        for id in asked:
            self._say(frames.withdrawn(id))
        for call in calls:
            self._say(frames.lost(call))

    def _give_up(self, trouble: OrchestratorError) -> None:
        with self._state:
            calls = list(self._open.values())
            self._open.clear()
            if any(call.method == "initialize" for call in calls):
                self._handshake = []
            self._trouble = trouble
            self._state.notify_all()
        for call in calls:
            self._say(frames.failed(call, trouble))

    def _say(self, line: bytes) -> None:
        """Write to the client. It has closed its side: there is nothing left to do here."""
        try:
            with self._writing:
                self._out.write(line)
                self._out.flush()
        except ValueError:
            return  # the run has ended and closed it; this thread only follows
        except OSError:
            os._exit(0)


def _pass_on(link: Link | None, line: bytes) -> None:
    """Send; where that fails, the reader of the link sees its end too, and answers what is open."""
    if link is not None:
        try:
            link.socket.sendall(line)
        except OSError:
            _shut(link.socket, socket.SHUT_RDWR)


def _shut(connection: socket.socket, how: int) -> None:
    with suppress(OSError):  # it may be down already
        connection.shutdown(how)
