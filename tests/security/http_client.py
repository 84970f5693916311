"""MCP over HTTP, request by request: each may be anything."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

TIMEOUT_S = 60
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def refusal(self) -> dict[str, Any]:
        """Of a request that the daemon turned away."""
        refused: dict[str, Any] = json.loads(self.body)["error"]["data"]
        return refused

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message, as JSON or as the one event of a stream."""
        text = self.body.decode()
        if self.headers["content-type"].startswith("text/event-stream"):
            text = next(line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip())
        message: dict[str, Any] = json.loads(text)
        return message


class HttpCaller:
    """One agent's requests; a header that is None is left out."""

    def __init__(self, url: str, token: str | None, *, path: str = "/mcp", **headers: str | None) -> None:
        self.url = urlsplit(url)
        assert self.url.hostname is not None
        assert self.url.port is not None
        self._path = path
        self.host, self.port = self.url.hostname, self.url.port
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        bearer = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._headers: dict[str, str | None] = {**usual, **bearer, **headers}

    def send(
        self,
        body: bytes | None,
        *,
        method: str = "POST",
        path: str | None = None,
        host: str | None = None,
        address: str | None = None,
        **headers: str | None,
    ) -> Response:
        """One request on a connection of its own. An underscore in a header's name is a hyphen."""
        given = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection = http.client.HTTPConnection(address or self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.putrequest(method, path or self._path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host if host is not None else f"{self.host}:{self.port}")
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def rpc(self, method: str, params: dict[str, Any] | None = None, **headers: str | None) -> Response:
        """One request of the newest protocol version."""
        meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **(params or {})}}
        headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method, **headers}
        if params and "name" in params:
            headers["Mcp_Name"] = str(params["name"])
        given: dict[str, Any] = dict(headers)
        return self.send(json.dumps(body).encode(), **given)

    def tool(self, name: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool's call."""
        response = self.rpc("tools/call", {"name": name, "arguments": arguments})
        assert response.status == 200, response
        result: dict[str, Any] = response.message["result"]
        return result

    def leave(self, body: bytes, **headers: str) -> None:
        """Send a request, and go away as soon as its answer begins."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        usual = {name: value for name, value in self._headers.items() if value is not None}
        connection.request("POST", self._path, body, {**usual, **given})
        connection.getresponse().close()
        connection.close()


class Raw:
    """A connection to the port, byte by byte."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def some(self) -> bytes:
        """What comes first."""
        return self._socket.recv(65536)

    def rest(self) -> bytes:
        """All that comes until the daemon closes."""
        found = bytearray()
        try:
            while piece := self._socket.recv(65536):
                found += piece
        except ConnectionResetError:
            pass
        return bytes(found)
