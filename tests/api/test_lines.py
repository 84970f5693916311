"""Lines over a real pair of sockets."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from anyio.abc import UNIXSocketStream

from orchestrator.api.line_stream import CHUNK_BYTES, LineStream
from orchestrator.core.errors import FrameTooLarge

pytestmark = pytest.mark.anyio

LIMIT = 10_000_000
LONG = b"x" * 3_000_000
"""More than the kernel holds for a socket that nobody reads."""


@asynccontextmanager
async def pair(unread_s: float | None = None) -> AsyncIterator[tuple[LineStream, LineStream]]:
    """Two ends; the first waits so long for the other to take what it sends."""
    one, other = socket.socketpair()
    async with await UNIXSocketStream.from_socket(one) as left, await UNIXSocketStream.from_socket(other) as right:
        with LineStream(left, unread_s=unread_s) as here, LineStream(right) as there:
            yield here, there


async def test_lines_come_in_order_however_they_were_cut() -> None:
    async with pair() as (here, there):
        await here.send(b"one\ntwo\nth")
        assert [await there.receive(LIMIT) for _ in range(2)] == [b"one", b"two"]
        assert not there.more_waiting
        await here.send(b"ree\n\n")
        assert [await there.receive(LIMIT) for _ in range(2)] == [b"three", b""]


async def test_what_the_socket_cannot_take_at_once_is_sent_later_and_whole() -> None:
    async with pair() as (here, there), anyio.create_task_group() as tasks:
        for mark in (b"a", b"b"):
            tasks.start_soon(here.send, mark + LONG + b"\n")
        assert [await there.receive(LIMIT) for _ in range(2)] == [b"a" + LONG, b"b" + LONG]


async def test_nobody_receives_so_little_is_taken() -> None:
    """The rest waits in the socket, so that a caller that sends without end is held up and fills no memory."""
    async with pair() as (here, there), anyio.create_task_group() as tasks:
        tasks.start_soon(here.send, LONG + b"\nnext\n")
        await anyio.wait_all_tasks_blocked()
        assert len(there._buffer) <= 2 * CHUNK_BYTES
        assert [await there.receive(LIMIT) for _ in range(2)] == [LONG, b"next"]


async def test_a_line_that_is_too_long_is_passed_over() -> None:
    async with pair() as (here, there), anyio.create_task_group() as tasks:
        tasks.start_soon(here.send, b'{"id":7,"x":"' + LONG + b'"}\nnext\n')
        with pytest.raises(FrameTooLarge) as caught:
            await there.receive(1000)
        assert caught.value.request_id == 7
        assert await there.receive(1000) == b"next"


async def test_the_end_comes_after_what_was_sent() -> None:
    async with pair() as (here, there):
        await here.send(b"last\nhalf")
        here._socket.shutdown(socket.SHUT_WR)
        assert await there.receive(LIMIT) == b"last"
        assert await there.receive(LIMIT) is None
        assert await there.receive(LIMIT) is None


async def test_sending_to_an_end_that_is_gone_is_no_error() -> None:
    one, other = socket.socketpair()
    async with await UNIXSocketStream.from_socket(one) as left:
        with LineStream(left) as here:
            other.close()
            await here.send(b"nobody hears this\n")
            assert await here.receive(LIMIT) is None


async def test_who_waits_is_notified_that_it_was_closed() -> None:
    async with pair() as (here, _), anyio.create_task_group() as tasks:
        heard: list[bytes | None] = []

        async def wait() -> None:
            heard.append(await here.receive(LIMIT))

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        here.close()
    assert heard == [None]


async def test_a_receiver_that_was_cancelled_loses_nothing() -> None:
    async with pair() as (here, there):
        with anyio.move_on_after(0):
            await there.receive(LIMIT)
        await here.send(b"kept\n")
        assert await there.receive(LIMIT) == b"kept"


async def test_who_takes_nothing_is_cut_off() -> None:
    async with pair(unread_s=0) as (here, there):
        await here.send(LONG + b"\n")
        assert here.cut_off
        assert here.unsent == 0
        await here.send(b"nobody hears this\n")
        assert await here.receive(LIMIT) is None
        with pytest.raises(FrameTooLarge):  # of the line, what came before the end
            await there.receive(1000)


async def test_who_may_wait_is_not_cut_off() -> None:
    async with pair(unread_s=0) as (here, there), anyio.create_task_group() as tasks:
        tasks.start_soon(partial(here.send, LONG + b"\n", patient=True))
        await anyio.wait_all_tasks_blocked()
        assert await there.receive(LIMIT) == LONG
        assert not here.cut_off
