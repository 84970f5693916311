"""The stdio transport's pipe: the client's lines to the daemon and back, before it is up and across its restarts.

One thread reads the client, one the daemon; `_state` guards what they share. The reader of the
daemon owns the link: it alone takes it down, connects, and puts a new one up.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from orchestrator.clients.stdio_proxy import messages
from orchestrator.core.errors import DaemonUnreachable, OrchestratorError

MOST_TIMES_SENT = 2
"""A call over which the daemon ended this often is not sent to the next one: it may be the cause."""

RECONNECT_S = 30.0
PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
REPLAY_TIMEOUT_S = 30.0
DRAIN_S = 60.0
"""A call may wait 50 s for a person; its answer is worth as long once the client has closed its side."""


def complain(error: OrchestratorError) -> None:
    """Show an error to the person."""
    print(f"orchestrator: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {error.hint}", file=sys.stderr)
    sys.stderr.flush()


class Link(NamedTuple):
    """The socket, its lines, and the session that the daemon gave."""

    socket: socket.socket
    lines: BinaryIO
    session: str

    def send(self, line: bytes) -> None:
        """Send; where that fails, the reader of the link sees its end too, and what is open is sent again."""
        try:
            self.socket.sendall(line)
        except OSError:
            self.shut(socket.SHUT_RDWR)

    def shut(self, how: int) -> None:
        """Announce the end of one side or both; the link may be down already."""
        with suppress(OSError):  # it may be down already
            self.socket.shutdown(how)

    def close(self) -> None:
        """Both sides."""
        self.lines.close()
        self.socket.close()


class StillUnreachable(Exception):
    """This try failed; another may not."""


Dial = Callable[[str | None], Link]
"""Connects, resuming a session. Raises StillUnreachable or OSError to be tried again, OrchestratorError to stop."""


class Sent(NamedTuple):
    """A call that is open: its line, and how many links took it."""

    call: messages.Call
    line: bytes
    times: int


class Pipe:
    """Joins the client's stdin and stdout to the daemon until the client closes its side."""

    def __init__(self, dial: Dial, constants: messages.Handshake, client_in: BinaryIO, client_out: BinaryIO) -> None:
        self._dial, self._constants = dial, constants
        self._in, self._out = client_in, client_out
        self._state = threading.Condition()
        self._writing = threading.Lock()
        self._link: Link | None = None
        self._session: str | None = None
        self._trouble: OrchestratorError | None = None  # why there is no link and nobody seeks one
        self._closing = False
        self._handshake: list[bytes] = []  # the 2025 eras' `initialize` and `notifications/initialized`
        self._handshake_id: messages.Id | None = None
        self._waiting: list[bytes] = []  # what is no call, for the next link
        self._open: dict[messages.Id, Sent] = {}
        self._asked: set[messages.Id] = set()  # by the present daemon, and not answered by the client
        self._answered_here: set[messages.Id | None] = set()  # the client has an answer: the daemon's is dropped

    def run(self) -> OrchestratorError | None:
        """Returns when the client has closed its side and the daemon has sent its last answer.

        The answer is why there was never a daemon, if there was none.
        """
        reader = threading.Thread(target=self._serve_daemon, name="daemon", daemon=True)
        reader.start()
        for line in self._in:
            self._take(line if line.endswith(b"\n") else line + b"\n")  # the last one may have no end
        with self._state:
            self._state.wait_for(lambda: self._known or (self._session is not None and not self._open))
            self._closing = True
            self._state.notify_all()
            if self._link is not None:
                self._link.shut(socket.SHUT_WR)
            elif self._trouble is None:
                return None
        reader.join(DRAIN_S)
        return self._trouble if self._session is None else None

    @property
    def _known(self) -> bool:
        """Whether it is known if there is a daemon."""
        return self._link is not None or self._trouble is not None

    # --- from the client -------------------------------------------------------------

    def _take(self, line: bytes) -> None:
        """Answer a line, pass it on, or keep it for the daemon that comes up."""
        message = messages.read_message(line, self._constants.writes)
        constant = self._constants.reply(message)
        if constant is not None:
            self._write(constant)
        with self._state:
            if message.call is not None and constant is None and self._link is None and self._trouble is not None:
                self._trouble = None  # have it tried once more
                self._state.notify_all()
            link = self._link
            passes = self._noted(message, constant=constant is not None)
        if passes and link is not None:
            link.send(message.line)

    def _noted(self, message: messages.ClientMessage, *, constant: bool) -> bool:
        """Keep of a line what the next link needs. True: it goes to the present one."""
        linked = self._link is not None
        match message.method, message.call:
            case "initialize", messages.Call(id=id):
                self._handshake, self._handshake_id = [message.line], id
                if constant and linked:
                    self._answered_here.add(id)
            case _, messages.Call() if constant:
                return False
            case "notifications/initialized", None:
                if self._handshake:
                    self._handshake[1:] = [message.line]
            case "notifications/cancelled", None:
                if message.cancelled is not None:
                    self._open.pop(message.cancelled, None)
            case _, None if message.answers is not None:  # of no use to another daemon than the one that asked
                self._asked.discard(message.answers)
            case _, None if not linked:
                self._waiting.append(message.line)
        if message.call is not None and not constant:
            self._open[message.call.id] = Sent(message.call, message.line, int(linked))
        return linked

    # --- from the daemon -------------------------------------------------------------

    def _serve_daemon(self) -> None:
        patience_s = RECONNECT_S
        while not self._closing:
            self._connect(patience_s)
            link = self._link
            if link is None:
                with self._state:
                    self._state.wait_for(lambda: self._trouble is None or self._closing)
                patience_s = 0.0
                continue
            self._pump(link)
            with self._state:
                self._link = None
                self._answered_here.clear()
                asked, self._asked = self._asked, set()
            link.close()
            for id in asked:
                self._write(messages.withdrawn(id))
            patience_s = RECONNECT_S

    def _pump(self, link: Link) -> None:
        try:
            while (line := link.lines.readline()).endswith(b"\n"):
                self._deliver(line)
        except OSError:
            pass  # the same as its end

    def _deliver(self, line: bytes) -> None:
        id = messages.replied(line)
        if id is not None:
            with self._state:
                self._open.pop(id, None)
                if id in self._answered_here:
                    self._answered_here.discard(id)
                    return
        elif (question := messages.asked(line)) is not None:
            with self._state:
                self._asked.add(question)
        self._write(line)

    def _connect(self, patience_s: float) -> None:
        """Put a link up, or report why there is none."""
        deadline, pause_s = time.monotonic() + patience_s, PAUSE_S
        while True:
            trouble: OrchestratorError
            try:
                link = self._dial(self._session)
                try:
                    self._put_up(link)
                except BaseException:
                    link.close()
                    raise
            except (OSError, StillUnreachable) as error:
                trouble = DaemonUnreachable(f"the daemon cannot be reached: {error}")
            except OrchestratorError as error:
                trouble, deadline = error, 0.0
            else:
                return
            if time.monotonic() >= deadline:
                break
            with self._state:
                if self._state.wait_for(lambda: self._closing, pause_s):
                    break
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._give_up(trouble)

    def _put_up(self, link: Link) -> None:
        """Bring a new connection to where the client believes it is, send it what is open, and make it the link."""
        self._report_lost(link)
        link.socket.settimeout(REPLAY_TIMEOUT_S)
        with self._state:
            if self._handshake and self._handshake_id not in self._open:
                self._answered_here.add(self._handshake_id)
            open_lines = [sent.line for sent in self._open.values() if sent.line not in self._handshake]
            self._open = {id: sent._replace(times=sent.times + 1) for id, sent in self._open.items()}
            for line in (*self._handshake, *self._waiting, *open_lines):
                link.socket.sendall(line)
            link.socket.settimeout(None)
            self._waiting.clear()
            self._link, self._session = link, link.session
            self._state.notify_all()

    def _report_lost(self, link: Link) -> None:
        """Answer what was open and is not sent again."""
        with self._state:
            resumed = self._session in (None, link.session)
            most = MOST_TIMES_SENT if resumed else 1
            lost = [sent.call for sent in self._open.values() if sent.times >= most]
            for call in lost:
                del self._open[call.id]
        for call in lost:
            self._write(messages.lost(call))

    def _give_up(self, trouble: OrchestratorError) -> None:
        if self._session is None:
            complain(trouble)
        with self._state:
            calls = [sent.call for sent in self._open.values()]
            self._open.clear()
            self._waiting.clear()
            if any(call.method == "initialize" for call in calls):
                self._handshake = []
            self._trouble = trouble
            self._state.notify_all()
        for call in calls:
            self._write(messages.failed(call, trouble))

    def _write(self, line: bytes) -> None:
        """Write to the client. It has closed its side: there is nothing left to do here."""
        try:
            with self._writing:
                self._out.write(line)
                self._out.flush()
        except ValueError:
            return  # the run has ended and closed it; this thread only follows
        except OSError:
            os._exit(0)
