"""Calls that make no sense: each gets a code and a next step, and the connection lives on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.api.framing import MAX_FRAME_BYTES
from tests.security.hostile_workspace import SECRET, HostileWorkspace, Line

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


@pytest.fixture
def line(hostile: HostileWorkspace) -> Iterator[Line]:
    """A connection of the test's own; it must still serve when the test is over."""
    with hostile.line(agent="bob") as opened:
        yield opened
        assert opened.done("read_file", path="a.txt")["total_lines"] == 3


def frame(method: str = "read_file", params: str = '{"path":"a.txt"}', **more: str) -> bytes:
    rest = "".join(f',"{name}":{value}' for name, value in more.items())
    return f'{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}{rest}}}'.encode()


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param(b"{", "invalid_frame", id="broken JSON"),
        pytest.param(b"", "invalid_frame", id="an empty line"),
        pytest.param(b"\xff\xfe\x00", "invalid_frame", id="no text at all"),
        pytest.param(b"GET / HTTP/1.1\r", "invalid_frame", id="another protocol"),
        pytest.param(b"[]", "invalid_frame", id="a list"),
        pytest.param(b"null", "invalid_frame", id="null"),
        pytest.param(b"[" + frame() + b"]", "invalid_frame", id="a batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":1}', "invalid_frame", id="no method"),
        pytest.param(b'{"jsonrpc":"1.0","id":1,"method":"status"}', "invalid_frame", id="another version"),
        pytest.param(b'{"id":{},"method":"status"}', "invalid_frame", id="an object as id"),
        pytest.param(b'{"id":1,"method":"\xff"}', "invalid_frame", id="a method that is no UTF-8"),
        pytest.param(b'{"id":1,"method":"\\ud800"}', "invalid_frame", id="half a pair as method"),
        pytest.param(b"[" * 100_000, "invalid_frame", id="endless nesting"),
        pytest.param(
            b'{"id":1,"method":"read_file","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "invalid_frame",
            id="endless nesting in the parameters",
        ),
        pytest.param(frame(params="[1]"), "invalid_parameter", id="a list of parameters"),
        pytest.param(frame(params='"a.txt"'), "invalid_parameter", id="a text as parameters"),
        pytest.param(frame(params='{"path":5,"end":"\\ud800"}'), "invalid_frame", id="wrong twice: type and half"),
        pytest.param(
            b'{"id":1,"method":"read_file","params":{"path":5,"end":"\xff"}}', "invalid_parameter", id="no UTF-8"
        ),
    ],
)
def test_frames(hostile: HostileWorkspace, line: Line, raw: bytes, code: str) -> None:
    with hostile.untouched(refusals=1):
        line.send(raw)
        answer = line.receive()
    assert answer.code == code, answer.raw[:400]
    hostile.tight(answer)
    assert answer.error["hint"]


def test_a_line_over_the_limit_is_read_past(hostile: HostileWorkspace, line: Line) -> None:
    with hostile.untouched(refusals=1):
        line.send(frame(params='{"path":"%s"}' % ("x" * MAX_FRAME_BYTES)))
        answer = line.receive()
    assert answer.code == "frame_too_large"
    assert answer.error["hint"]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        pytest.param(b"hello", "invalid_frame", id="garbage"),
        pytest.param(b"\xff\x00\xfe", "invalid_frame", id="bytes"),
        pytest.param(b"[" * 60_000, "invalid_frame", id="nesting"),
        pytest.param(b"{}", "invalid_frame", id="empty"),
        pytest.param(b'{"orchestrator":1,"transport":"back"}', "invalid_frame", id="no such transport"),
        pytest.param(b'{"orchestrator":2,"transport":"rpc"}', "invalid_frame", id="another version"),
        pytest.param(b'{"orchestrator":1,"transport":"rpc","agent":"\xff"}', "invalid_frame", id="no UTF-8"),
        pytest.param(b'{"orchestrator":1,"transport":"rpc","agent":["a"]}', "invalid_frame", id="a list as name"),
        pytest.param(b"x" * (64 * 1024 + 1), "frame_too_large", id="too long"),
    ],
)
def test_preambles(hostile: HostileWorkspace, first: bytes, code: str) -> None:
    with hostile.untouched(refusals=1), Line(hostile.daemon.socket, raw=first) as line:
        assert line.first.reply["code"] == code
        assert line.first.reply["ok"] is False
        assert line.first.reply["hint"]
        assert line.ended()


@pytest.mark.parametrize(
    ("operation", "params", "code"),
    [
        pytest.param("read_fiel", {"path": "a.txt"}, "unknown_operation", id="unknown tool"),
        pytest.param("_refused", {}, "unknown_operation", id="an inner name"),
        pytest.param("__class__", {}, "unknown_operation", id="a name of the language"),
        pytest.param("", {}, "unknown_operation", id="no name"),
        pytest.param("\x1b[2J" * 500, {}, "unknown_operation", id="a name that paints"),
        pytest.param("run_command", {"argv": []}, "invalid_parameter", id="no program"),
        pytest.param("run_command", {"argv": [""]}, "invalid_parameter", id="a program without a name"),
        pytest.param("run_command", {"argv": ["ls", "a\0b"]}, "invalid_parameter", id="NUL in an argument"),
        pytest.param("run_command", {"argv": "ls"}, "invalid_parameter", id="a line for a shell"),
        pytest.param("run_command", {"argv": ["ls"], "cwd": "../.."}, "path_not_canonical", id="begun outside"),
        pytest.param("run_command", {"argv": ["ls"], "cwd": "/etc"}, "path_absolute", id="begun elsewhere"),
        pytest.param("run_command", {"argv": ["ls"], "cwd": "a.txt"}, "not_a_directory", id="begun in a file"),
        pytest.param("run_command", {"argv": ["ls"], "cwd": "absent"}, "not_found", id="begun nowhere"),
        pytest.param("run_command", {"argv": ["ls"], "env": ["LD_PRELOAD=x"]}, "invalid_parameter", id="its variables"),
        pytest.param("command_output", {"command": "@1"}, "version_unknown", id="no command"),
        pytest.param("get_overview", {"path": "a.txt", "depth": 0}, "invalid_parameter", id="no level"),
        pytest.param("get_overview", {"path": "a.txt", "symbol": "x"}, "symbol_not_found", id="no such symbol"),
        pytest.param("get_overview", {"path": "a.txt", "changed_since": "@x"}, "invalid_parameter", id="since nothing"),
        pytest.param("read_file", {"path": 5}, "invalid_parameter", id="wrong type"),
        pytest.param("read_file", {}, "invalid_parameter", id="left out"),
        pytest.param("read_file", {"path": "a.txt", "start": 0}, "invalid_parameter", id="out of range"),
        pytest.param("read_file", {"path": "a.txt", "start": 10**30}, "invalid_parameter", id="a huge line"),
        pytest.param("read_file", {"path": "a.txt", "start": 99}, "invalid_parameter", id="behind the end"),
        pytest.param("read_lines", {"path": "a.txt", "start": 3, "end": 1}, "invalid_parameter", id="end before start"),
        pytest.param("read_file", {"path": "a.txt", "at": "@x"}, "invalid_parameter", id="no version"),
        pytest.param("read_file", {"path": "a.txt", "at": -1}, "invalid_parameter", id="a negative version"),
        pytest.param("read_file", {"path": "a.txt", "at": 10**30}, "invalid_parameter", id="a huge version"),
        pytest.param("get_diff", {"path": "a.txt", "from_": "@" + "9" * 30}, "invalid_parameter", id="a huge diff"),
        pytest.param("revert", {"change": 10**30}, "invalid_parameter", id="a huge change"),
        pytest.param("await_change", {"id": "@99999999"}, "version_unknown", id="a change to come"),
        pytest.param(
            "file_history", {"path": "a.txt", "cursor": "@" + "9" * 30}, "invalid_parameter", id="a huge cursor"
        ),
        pytest.param("search_content", {"pattern": "x", "cursor": "y"}, "invalid_parameter", id="a made-up cursor"),
        pytest.param("search_content", {"pattern": "x", "cursor": "²:a.txt"}, "invalid_parameter", id="a cursor in ²"),
        pytest.param("journal_query", {"kind": "nothing"}, "invalid_parameter", id="no kind of event"),
        pytest.param("edit_file", {"path": "a.txt", "changes": []}, "invalid_parameter", id="no changes"),
        pytest.param("apply_patch", {"patch": "no diff\n", "path": "a.txt"}, "patch_invalid", id="no diff"),
        pytest.param(
            "apply_patch",
            {"patch": "@@ -" + "9" * 5000 + " +1 @@\n-a\n+b\n", "path": "a.txt"},
            "base_required",
            id="a patch from far away",  # numbers of that size are none, so its lines would be looked for
        ),
        pytest.param(
            "write_file", {"path": "a.txt", "content": "x", "mode": "create"}, "already_exists", id="there already"
        ),
        pytest.param(
            "write_file", {"path": "n.txt", "content": "x", "mode": "overwrite"}, "invalid_parameter", id="no mode"
        ),
        pytest.param("end_task", {"task": "@1"}, "version_unknown", id="no task"),
    ],
)
def test_calls(hostile: HostileWorkspace, line: Line, operation: str, params: dict[str, Any], code: str) -> None:
    answer = hostile.refused(operation, code, caller=line, **params)
    assert answer.error["hint"], answer.reply


def test_an_unknown_parameter_names_the_nearest_and_shows_the_call(hostile: HostileWorkspace, line: Line) -> None:
    answer = hostile.refused("read_file", "unknown_parameter", caller=line, file_path="a.txt")
    assert answer.error["details"]["nearest"] == "path"
    assert '{"path":"a.txt"}' in answer.error["hint"]


def test_an_unknown_tool_names_the_nearest(hostile: HostileWorkspace, line: Line) -> None:
    assert "read_file" in hostile.refused("read_fiel", "unknown_operation", caller=line, path="a.txt").error["hint"]


def test_an_id_of_any_size_comes_back(line: Line) -> None:
    number = 10**40
    line.send(json.dumps({"id": number, "method": "read_file", "params": {"path": "a.txt"}}).encode())
    assert line.receive().reply["id"] == number


def test_binary_is_not_read_as_text(hostile: HostileWorkspace, line: Line) -> None:
    (hostile.work / "logo.bin").write_bytes(b"\x00\x01" + SECRET.encode() + b"\x00" * 100)
    version = line.done("file_info", path="logo.bin")["version_id"]
    for operation, more in (
        ("read_file", {}),
        ("read_lines", {"start": 1}),
        ("search_content", {"pattern": "outside"}),
        ("edit_file", {"changes": [{"search": "outside", "replace": "x"}]}),
        ("apply_patch", {"patch": "@@ -1 +1 @@\n-outside\n+x\n", "base": version}),
        ("write_file", {"mode": "append", "content": "x"}),
    ):
        answer = hostile.refused(operation, "binary_file", caller=line, path="logo.bin", **more)
        assert answer.error["hint"], operation


def test_a_large_hole_is_no_text(hostile: HostileWorkspace, line: Line) -> None:
    big = hostile.work / "big.log"
    big.touch()
    with big.open("r+b") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    for operation, code, more in (
        ("read_file", "binary_file", {}),  # a hole is no text
        ("search_content", "binary_file", {"pattern": "outside"}),
        ("edit_file", "binary_file", {"changes": [{"search": "outside", "replace": "x"}]}),
        ("write_file", "binary_file", {"mode": "append", "content": "x"}),
    ):
        answer = hostile.refused(operation, code, caller=line, path="big.log", **more)
        assert answer.error["hint"], operation
    assert line.done("file_info", path="big.log")["size"] == 50 * 1024 * 1024 + 1


def test_a_whole_file_is_not_replaced_unseen(hostile: HostileWorkspace, line: Line) -> None:
    (hostile.work / "unseen.txt").write_text(TEXT)
    answer = hostile.refused(
        "write_file", "base_required", caller=line, path="unseen.txt", content="x", mode="truncate"
    )
    assert answer.error["hint"]
    version = hostile.person.done("file_info", path="unseen.txt")["version_id"]
    assert version.encode() not in answer.raw, "it would only be pasted back"
    line.done("read_file", path="unseen.txt", end=19)
    hostile.refused("write_file", "base_required", caller=line, path="unseen.txt", content="x", mode="truncate")


def test_the_base_of_another_file_is_refused(hostile: HostileWorkspace, line: Line) -> None:
    (hostile.work / "first.txt").write_text(TEXT)
    (hostile.work / "second.txt").write_text("other\n")
    other = hostile.person.done("file_info", path="second.txt")["content_hash"]
    edit = {"path": "first.txt", "changes": [{"search": "line 3\n", "replace": "x\n"}]}
    line.done("read_file", path="first.txt")
    assert hostile.refused("edit_file", "stale_base", caller=line, base=other, **edit).error["hint"]
    hostile.refused("write_file", "stale_base", caller=line, base=other, path="first.txt", content="x", mode="truncate")
    assert hostile.refused("edit_file", "stale_base", caller=line, base="@1", **edit).error["hint"]
    hostile.refused("edit_file", "invalid_parameter", caller=line, base="@99999999", **edit)


def test_a_request_id_is_not_used_for_another_body(hostile: HostileWorkspace, line: Line) -> None:
    (hostile.work / "ids.txt").write_text(TEXT)
    edit = {"path": "ids.txt", "request_id": "r-1"}
    line.done("edit_file", changes=[{"search": "line 3\n", "replace": "x\n"}], **edit)
    again = hostile.refused(
        "edit_file", "request_id_reused", caller=line, changes=[{"search": "line 4\n", "replace": "x\n"}], **edit
    )
    assert again.error["hint"]
    hostile.refused("delete_file", "request_id_reused", caller=line, **edit)


def test_what_matches_nothing_shows_what_is_there(hostile: HostileWorkspace, line: Line) -> None:
    (hostile.work / "near.txt").write_text(TEXT)
    changes = [{"search": "line 17!\n", "replace": "x\n"}]
    for operation, more in (
        ("edit_file", {"changes": changes}),
        ("apply_patch", {"patch": "@@ -17 +17 @@\n-line 17!\n+x\n"}),
    ):
        answer = hostile.refused(operation, "search_not_found", caller=line, path="near.txt", **more)
        assert "line 17" in answer.error["shown"], operation
        assert "line 17" not in json.dumps(answer.error["details"])
        assert answer.error["details"]["nearest"], operation
        assert answer.error["hint"]
    twice = hostile.refused(
        "edit_file", "search_ambiguous", caller=line, path="near.txt", changes=[{"search": "line 1", "replace": "x"}]
    )
    assert twice.error["hint"]
