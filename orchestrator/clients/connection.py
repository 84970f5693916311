"""The socket's JSON-RPC from outside: one blocking connection, as the CLI uses it."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar, cast

import msgspec

from orchestrator.api import processes, sockets
from orchestrator.api.framing import (
    SUBSCRIBE,
    AnyReply,
    FeedEvent,
    Refusal,
    Request,
    Subscribe,
    Welcome,
    refusal,
)
from orchestrator.api.operation import AnyOperation, Operation
from orchestrator.api.parameters import Params
from orchestrator.api.results import ChangeAnswer, FileText, Notice, Result
from orchestrator.clients.running_daemon import RemoteError, accepted, kill_hint
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable, ParameterInvalid

R = TypeVar("R", bound=Result)

CONNECT_TIMEOUT_S = 10.0


class Caller(NamedTuple):
    """Who calls: an agent by token or by name, else the person at the keyboard."""

    agent: str | None = None
    token: str | None = None
    session: str | None = None
    client: str = "orchestrator"
    login: str | None = None  # without a session: that of this login at a terminal

    def preamble(self) -> bytes:
        """The first line on the socket."""
        return sockets.preamble("rpc", person=not (self.agent or self.token), **self._asdict())


class Asked(NamedTuple):
    """A call on its way."""

    id: int
    operation: AnyOperation
    request_id: str | None
    line: bytes

    def answer(self, reply: AnyReply) -> Result:
        """The typed result in a reply. Raises RemoteError."""
        if reply.error is not msgspec.UNSET:
            refused = remote_error(reply.error.data)
            refused.notices = reply.notices
            raise refused
        result: Result = msgspec.json.decode(reply.result, type=self.operation.result)
        if reply.notices and isinstance(result, FileText | ChangeAnswer):
            result = msgspec.structs.replace(result, notices=reply.notices)
        return result

    def cut_off(self) -> DaemonRestarted:
        """What to raise where the connection ended before the reply."""
        details = {"request_id": self.request_id} if self.request_id else {}
        return DaemonRestarted(f"the daemon ended while {self.operation.name} was open", details=details)


def asked(id: int, operation: AnyOperation, params: Params) -> Asked:
    """Write a call down. Parameters at their defaults are left out; a write gets a `request_id`.

    Raises RemoteError, as the daemon would, for a text that no line can carry.
    """
    values = {
        field.encode_name: value
        for field in _fields(type(params))
        if (value := getattr(params, field.name)) != field.default
    }
    request_id = values.get("request_id")
    if request_id is None and operation.writes and operation.takes("request_id"):
        request_id = values["request_id"] = uuid.uuid4().hex
    try:
        written = msgspec.json.encode(values)
    except UnicodeEncodeError as error:
        odd = ParameterInvalid("params", f"not UTF-8 text: {error}", hint="Send text that is valid UTF-8.")
        raise remote_error(refusal(odd)) from error
    request = Request(method=operation.name, id=id, params=msgspec.Raw(written))
    return Asked(id, operation, request_id, msgspec.json.encode(request) + b"\n")


_fields = cache(msgspec.structs.fields)
"""msgspec takes a quarter of a millisecond to find them."""


def remote_error(refused: Refusal) -> RemoteError:
    """The refusal as an exception."""
    return RemoteError(**msgspec.structs.asdict(refused))


def welcomed(line: bytes | None) -> Welcome:
    """Read the daemon's answer to a preamble, if there was one. Raises RemoteError, DaemonUnreachable."""
    try:
        return msgspec.convert(accepted(line or b""), Welcome)
    except msgspec.ValidationError as error:
        raise DaemonUnreachable("the daemon did not answer the preamble, or what answers is not the daemon") from error


def followed(line: bytes | None, position: str) -> FeedEvent:
    """Read a line of a feed; nothing if the connection has ended.

    Raises DaemonRestarted (its `details` have the position, to go on from), RemoteError where the daemon ends the feed.
    """
    if not line:
        raise DaemonRestarted(
            "the daemon ended while events were followed",
            hint=f"Follow again from {position}: nothing is missed.",
            details={"after": position},
        )
    reply = msgspec.json.decode(line, type=AnyReply)
    if reply.method != "event":
        raise remote_error(msgspec.json.decode(reply.params, type=Refusal))
    return msgspec.json.decode(reply.params, type=FeedEvent)


class Connection:
    """One call at a time to the daemon. Use as a context manager."""

    def __init__(self, path: str, caller: Caller) -> None:
        """Connect and say who calls. Raises DaemonUnreachable, RemoteError."""
        try:
            self._socket: socket.socket = sockets.connect(path, CONNECT_TIMEOUT_S)
        except OSError as error:
            raise DaemonUnreachable(f"nothing answers on {path}: {error}") from error
        self._lines: BinaryIO = self._socket.makefile("rb")
        self.pid = processes.peer_of(self._socket).pid
        """Of the daemon; 0 where the system does not say it: on macOS, and of a process outside of our container."""
        try:
            self._socket.sendall(caller.preamble())
            self.welcome = welcomed(self._lines.readline())
            self._socket.settimeout(None)
        except OSError as error:
            self.close()
            who = f"the daemon (process {self.pid})" if self.pid else "the daemon"
            hint = kill_hint(self.pid) if isinstance(error, TimeoutError) and self.pid else None
            raise DaemonUnreachable(f"{who} on {path} does not answer: {error}", hint=hint) from error
        except BaseException:
            self.close()
            raise
        self._last = 0
        self.notices: tuple[Notice, ...] = ()
        """The notices of the last answer: others' changes to what this session has read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the session lives on in the daemon for as long as it keeps it."""
        self._lines.close()
        self._socket.close()

    def call(self, operation: Operation[..., Any, R], params: Params) -> R:
        """Call an operation and wait for its answer.

        Raises RemoteError with the daemon's refusal, DaemonRestarted where the connection ends.
        """
        self._last += 1
        call = asked(self._last, operation, params)
        with suppress(OSError):  # then its end is read
            self._socket.sendall(call.line)
        line = self._received()
        if not line:
            raise call.cut_off()
        reply = msgspec.json.decode(line, type=AnyReply)
        self.notices = reply.notices
        return cast("R", call.answer(reply))

    def follow(self, params: Subscribe) -> Iterator[FeedEvent]:
        """The events of a feed, without end; the connection is of no other use. Raises as `call` and `followed`."""
        position = self.call(SUBSCRIBE, params).after
        while True:
            event = followed(self._received(), position)
            position = event.seq
            yield event

    def _received(self) -> bytes:
        """The next line; empty at the end of the connection."""
        try:
            line = self._lines.readline()
        except OSError:
            return b""
        return line if line.endswith(b"\n") else b""
