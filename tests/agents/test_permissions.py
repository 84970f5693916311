"""What is answered to an agent that asks, before a person is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from orchestrator.agents.permissions import Verdict, YesTo, decide, inside
from orchestrator.agents.wire import Content, Kind, Location, ToolCall

OPEN, ASKED, CLOSED = Verdict("a", "allow", "r"), Verdict("b", "ask", "r"), Verdict("c", "deny", "r")
DIFF = Content(type="diff", path="/w/a", new_text="x")


def call(kind: Kind, *, title: str = "t", diff: bool = False, paths: tuple[str, ...] = ("/w/a",)) -> ToolCall:
    locations = tuple(Location(path=path) for path in paths)
    return ToolCall(tool_call_id="1", title=title, kind=kind, locations=locations, content=(DIFF,) if diff else ())


OTHERS = {"server": "other", "tool": "edit_file", "arguments": {}}
CODEX = ToolCall(tool_call_id="1", title="Approve MCP tool call", raw_input={**OTHERS, "server": "orchestrator"})


@pytest.mark.parametrize(
    ("asked", "yes_to", "verdicts", "outside", "answer"),
    [
        pytest.param(call("read"), "reads", [OPEN], False, "allow", id="a read"),
        pytest.param(call("search"), "reads", [OPEN], False, "allow", id="a search"),
        pytest.param(call("read"), "none", [OPEN], False, "ask", id="a read, and nothing was said beforehand"),
        pytest.param(call("edit"), "reads", [OPEN], False, "ask", id="an edit, and yes to reads"),
        pytest.param(call("edit"), "edits", [OPEN], False, "allow", id="an edit"),
        pytest.param(call("move"), "edits", [OPEN, OPEN], False, "allow", id="a move"),
        pytest.param(call("edit"), "edits", [OPEN, ASKED], False, "ask", id="policy asks about one"),
        pytest.param(call("edit"), "edits", [OPEN, CLOSED], True, "reject", id="policy denies one"),
        pytest.param(call("read"), "edits", [OPEN], True, "ask", id="one is outside"),
        pytest.param(call("read", diff=True), "reads", [OPEN], False, "ask", id="a read that shows an edit"),
        pytest.param(call("execute"), "edits", [], False, "ask", id="a command, with a file"),
        pytest.param(call("other"), "edits", [], False, "ask", id="of no kind"),
        pytest.param(call("read", paths=()), "reads", [], False, "ask", id="no file is named"),
        pytest.param(
            call("other", title="mcp__orchestrator__edit_file", paths=()), "none", [], False, "allow", id="our tool"
        ),
        pytest.param(
            call("other", title="orchestrator_edit_file", paths=()), "none", [], False, "allow", id="opencode"
        ),
        pytest.param(
            call("other", title="edit_file (orchestrator MCP Server)", paths=()),
            "none",
            [],
            False,
            "allow",
            id="Gemini",
        ),
        pytest.param(CODEX, "none", [], False, "allow", id="Codex"),
        pytest.param(replace(CODEX, kind="execute"), "edits", [], False, "ask", id="a command that says it is ours"),
        pytest.param(replace(CODEX, raw_input=OTHERS), "edits", [], False, "ask", id="another server's"),
        pytest.param(
            call("execute", title="orchestrator_x", paths=()), "edits", [], False, "ask", id="a command with its name"
        ),
        pytest.param(
            call("other", title="orchestrator_x; rm -r .", paths=()), "edits", [], False, "ask", id="more than a name"
        ),
        pytest.param(call("edit", title="orchestrator_x"), "none", [OPEN], False, "ask", id="its name, and a file"),
    ],
)
def test_decide(asked: ToolCall, yes_to: YesTo, verdicts: list[Verdict], outside: bool, answer: str) -> None:
    assert decide(asked, yes_to, verdicts, outside=outside).answer == answer


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("/w/a", "a", id="inside"),
        pytest.param("/w/b/../a", "a", id="normalised"),
        pytest.param("/w/../etc/passwd", None, id="climbs out"),
        pytest.param("/w", None, id="the root itself"),
        pytest.param("/wx/a", None, id="a longer name"),
        pytest.param("a", None, id="relative"),
        pytest.param("//w/a", None, id="two slashes"),
        pytest.param("/w/a\0", None, id="a zero byte"),
    ],
)
def test_inside(path: str, found: str | None) -> None:
    assert inside("/w", path) == found
