"""What stands between the scenarios and a daemon: each speaks HTTP to them and adds what they can't."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

Headers = dict[str, str]


async def _head(reader: asyncio.StreamReader) -> tuple[str, Headers]:
    """The first line of a request, and its headers."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    return first, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


@asynccontextmanager
async def _listening(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Any]) -> AsyncIterator[int]:
    """A port at which each connection is served once."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer, port)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # whoever ran the scenario has hung up
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        server.close()


@asynccontextmanager
async def with_token(target: int, token: str) -> AsyncIterator[int]:
    """Requests go to the daemon's port as they are, but with the token, and with its address where they name ours."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        first, headers = await _head(reader)
        for name in ("host", "origin"):
            if name in headers:
                headers[name] = headers[name].replace(f":{port}", f":{target}")
        headers |= {"authorization": f"Bearer {token}", "connection": "close"}
        there, back = await asyncio.open_connection("127.0.0.1", target)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        back.write(f"{first}\r\n{lines}\r\n".encode("latin-1"))
        sending = asyncio.create_task(_copy(reader, back))
        try:
            await _copy(there, writer)
        finally:
            sending.cancel()
            back.close()

    async with _listening(serve) as port:
        yield port


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while piece := await source.read(65536):
        target.write(piece)
        await target.drain()


class _Program:
    """One `orchestrator mcp`; its answers by the ids of their requests."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process, self._waiting = process, dict[str, asyncio.Future[bytes]]()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            waiting = self._waiting.pop(json.dumps(json.loads(line).get("id")), None)
            if waiting is not None:
                waiting.set_result(line)

    async def send(self, message: dict[str, Any]) -> bytes | None:
        """The answer to a request; None to anything else."""
        assert self._process.stdin is not None
        answer: asyncio.Future[bytes] | None = None
        if "id" in message and "method" in message:
            answer = self._waiting[json.dumps(message["id"])] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()
        return None if answer is None else await asyncio.wait_for(answer, 20)

    async def end(self) -> None:
        """End its input, and wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        self._reading.cancel()


@asynccontextmanager
async def over_stdio(command: Sequence[str], env: dict[str, str]) -> AsyncIterator[int]:
    """Messages go to `command`: those of a session to one of its own, and so each that belongs to none."""
    programs: dict[str, _Program] = {}

    async def program(name: str) -> _Program:
        if name not in programs:
            process = await asyncio.create_subprocess_exec(
                *command, env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24
            )
            programs[name] = _Program(process)
        return programs[name]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        first, headers = await _head(reader)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        status, answer, session = "405 Method Not Allowed", b"", headers.get("mcp-session-id", "")
        if first.startswith("POST "):
            message = json.loads(body)
            if message.get("method") == "initialize":
                session = uuid.uuid4().hex
            name = session or uuid.uuid4().hex
            answer = await (await program(name)).send(message) or b""
            if not session:
                await programs.pop(name).end()
            status = "200 OK" if answer else "202 Accepted"
        named = f"mcp-session-id: {session}\r\n" if session else ""
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{named}"
        writer.write(f"{head}content-length: {len(answer)}\r\n\r\n".encode() + answer)
        await writer.drain()

    async with _listening(serve) as port:
        try:
            yield port
        finally:
            for each in programs.values():
                await each.end()
