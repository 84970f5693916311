"""What reads bytes of callers and files first. Each either takes them or refuses by an error of ours."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from orchestrator.api import framing
from orchestrator.api.failures import parse_params
from orchestrator.api.operations import BY_NAME
from orchestrator.clients.stdio_proxy.messages import read_message, replied
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.policy.cases import parse_cases
from orchestrator.core.text.forms.recognise import parse
from tests.core.policy.shipped import problems_of

_PREAMBLE = msgspec.json.Decoder(framing.Preamble)
_REQUEST = msgspec.json.Decoder(framing.Request)
_OPERATIONS = [BY_NAME[name] for name in sorted(BY_NAME)]


def frames(data: bytes) -> None:
    """A line on the socket, as preamble, as request, and as the parameters of an operation."""
    with suppress(*framing.UNREADABLE):
        _PREAMBLE.decode(data)
    with suppress(*framing.UNREADABLE):
        _REQUEST.decode(data)
    operation = _OPERATIONS[data[0] % len(_OPERATIONS) if data else 0]
    with suppress(OrchestratorError):
        parse_params(operation, data[1:])


def mcp_lines(data: bytes) -> None:
    """A line of an MCP client at the stdio transport: it goes on as it is, or with a `request_id` more."""
    line = data.replace(b"\n", b" ") + b"\n"
    message = read_message(line, {"edit_file"})
    assert message.line.endswith(b"\n")
    assert message.line.count(b"\n") == 1
    assert message.line == line or (message.call is not None and message.call.request_id)
    replied(line)


def patches(data: bytes) -> None:
    """A patch of any form."""
    text = data.decode("utf-8", "replace")
    for path in (None, "a.txt"):
        with suppress(OrchestratorError):
            assert parse(text, path).files


def policies(data: bytes) -> None:
    """A policy file, and a table of cases beside it."""
    text = data.decode("utf-8", "replace")
    assert all(problem.line >= 1 for problem in problems_of(text, "p.toml"))
    with suppress(OrchestratorError):
        parse_cases(text, "c.toml")


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (frames, mcp_lines, patches, policies)
}

SEEDS: dict[str, tuple[bytes, ...]] = {
    "frames": (
        b'{"orchestrator":1,"transport":"rpc","agent":"a","max_answer_bytes":5}',
        b'{"jsonrpc":"2.0","id":1,"method":"read_file","params":{"path":"a.txt","start":1}}',
        b'\x09{"path":"a.txt","changes":[{"search":"a","replace":"b"}],"base":"@7"}',
    ),
    "mcp_lines": (
        b'{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"edit_file","arguments":{"path":"a"}}}',
        b'{"jsonrpc":"2.0","id":7,"result":{}}',
    ),
    "patches": (
        b"diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
        b"*** Begin Patch\n*** Update File: a\n@@ def f\n a\n-b\n+c\n*** End Patch\n",
        b"a.txt\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        b"```python\nx = 1\n```\n",
    ),
    "policies": (
        (
            b'name = "p"\nextends = "default"\ndefault = "ask"\n[limits]\napproval_ttl_s = 60\n'
            b'[[rule]]\nname = "r"\nagents = ["*"]\nactions = ["read"]\npaths = ["**", "!x/[a-z]"]\nverdict = "allow"\n'
        ),
        b'[[case]]\nagent = "a"\naction = "write"\npath = "x"\nverdict = "ask"\n',
    ),
}
