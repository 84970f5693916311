"""A real HTTP server on loopback that speaks both model forms, and answers as a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, get_args

import msgspec

Form = Literal["anthropic", "openai"]
FORMS: tuple[Form, ...] = get_args(Form)


class Act(msgspec.Struct, frozen=True):
    """What it does at one call."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = {}
    hangs: bool = False  # until the service is closed
    breaks: bool = False  # closes without a word


class Asked(msgspec.Struct, frozen=True):
    """What it was sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.body)


class Service:
    """One server; the last act of its script is for all calls after."""

    def __init__(self, url: str, script: list[Act]) -> None:
        self.url, self.script = url, script
        self.asked: list[Asked] = []
        self.closing = threading.Event()

    def next_act(self) -> Act:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.service.asked.append(Asked(self.path, headers, json.loads(body)))
        act = self.service.next_act()
        if act.hangs:
            self.service.closing.wait()
        if act.hangs or act.breaks:
            self.close_connection = True
            return
        self.send_response(act.status)
        for name, value in _headers(act).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(act.body)
        except ConnectionError:
            self.close_connection = True  # the caller had enough

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def _headers(act: Act) -> dict[str, str]:
    return {"content-type": "application/json", "content-length": str(len(act.body)), **act.headers}


@contextmanager
def serving(*script: Act) -> Iterator[Service]:
    """A server until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        service = Service(f"http://127.0.0.1:{server.server_address[1]}", list(script))
        server.RequestHandlerClass = type("Handler", (_Handler,), {"service": service})
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.closing.set()
            server.shutdown()
            thread.join()


def message(form: Form, answer: object, *, cut: bool = False, refused: bool = False) -> Act:
    """A well-formed message with this answer in it; a text goes in as it is."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    body: dict[str, Any]
    said: dict[str, Any]
    if form == "anthropic":
        block = (
            {"type": "text", "text": text}
            if isinstance(answer, str)
            else {"type": "tool_use", "id": "toolu_1", "name": "resolve_conflict", "input": answer}
        )
        stop = "max_tokens" if cut else "refusal" if refused else "tool_use"
        body = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted-large-1",
            "content": [block],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 50},
        }
    else:
        said = {"role": "assistant", "content": text, **({"refusal": "no"} if refused else {})}
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted-large-1",
            "choices": [{"index": 0, "message": said, "finish_reason": "length" if cut else "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
        }
    return Act(json.dumps(body).encode())


def edited(*regions: tuple[int, list[str]], reason: str = "kept both") -> dict[str, Any]:
    """An answer that gives lines."""
    return {
        "verdict": "content",
        "regions": [{"region": number, "lines": lines} for number, lines in regions],
        "reason": reason,
    }


def base_url(service_url: str, form: Form) -> str:
    """As the vendor's SDK takes it."""
    return service_url if form == "anthropic" else f"{service_url}/v1"
