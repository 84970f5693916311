"""A scene about a conflict that a model settles: a server on loopback speaks a model's form, and gives one answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from demo.play import Play, became
from demo.stage import DemoFailed

FILE = "orchestrator-demo-words.md"
BEFORE = "# Words\n\nthe greeting\n\nthe end\n"
HERS, HIS = "the greeting, in Latin", "the greeting, in Greek"
BOTH = ["the greeting, in Latin and in Greek"]
WAIT_S = 30

POLICY = """
[[reviewer]]
name = "model"
kind = "program"
argv = ["orchestrator-model-reviewer", "--api", "openai", "--base-url", "{url}/v1", "--model", "scripted"]

[[route]]
paths = ["{file}"]
reviewers = ["model"]
accept = "auto"
deadline_s = 30
"""


def settled_by_a_model(play: Play) -> None:
    """Both want the same line again; this time the policy routes the conflict to a model, whose answer is checked."""
    teller = play.teller
    teller.chapter(f"Both change the same line of {FILE}: the policy asks a model, and no person")
    with _model() as (url, asked):
        _route(play, url)
        play.alice.call("write_file", path=FILE, content=BEFORE, mode="create")
        play.bob.call("read_file", path=FILE)
        first = play.alice.call("edit_file", path=FILE, changes=[{"search": "the greeting", "replace": HERS}])
        teller.change("alice", "edit_file", became("applied", first))
        answer = play.bob.call("edit_file", path=FILE, changes=[{"search": "the greeting", "replace": HIS}])
        conflict = became("conflict", answer)
        teller.change("bob", "edit_file", conflict)
        name = str(conflict["conflict"])
        known = became("applied", play.bob.call("await_change", id=name, timeout_s=WAIT_S))
        teller.line(f"       bob's await_change({name}) says: {known['status']} as {known['change']}")
    if BOTH[0] not in play.stage.read(FILE):
        raise DemoFailed(f"{FILE} does not hold what the model answered")
    (question,) = asked
    sent = json.dumps(question)
    if HERS not in sent or HIS not in sent:
        raise DemoFailed("the model was not shown both sides")
    (review,) = play.stage.person("journal", "query", "--kind", "review_answered").answer["entries"]
    model = review["event"].get("usage", {}).get("model", "?")
    teller.line(f"{review['seq']:>5}  {review['kind']} by {model}: a line of the journal")


def _route(play: Play, url: str) -> None:
    """The operator's policy: the shipped one, and beside it a reviewer and who is sent to it."""
    shipped = (Path(__file__).parent.parent / "policies" / "default.toml").read_text(encoding="utf-8")
    state = Path(play.stage.person("status").answer["state_dir"])
    (state / "policy.toml").write_text(shipped + POLICY.format(url=url, file=FILE), encoding="utf-8")
    play.stage.person("policy", "reload")


@contextmanager
def _model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A chat completions server with one answer; what it was sent."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            verdict = {"verdict": "content", "regions": [{"region": 1, "lines": BOTH}], "reason": "both are wanted"}
            message = {"role": "assistant", "content": json.dumps(verdict)}
            usage = {"prompt_tokens": 400, "completion_tokens": 30, "total_tokens": 430}
            body = json.dumps(
                {
                    "id": "chatcmpl-demo",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "scripted",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": usage,
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            serving.join()
