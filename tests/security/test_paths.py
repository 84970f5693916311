"""Paths that lead out, or have no spelling: FAULTS rows 1 to 18, and its names.

`test_attacks_by_transport.py` tries each wrong spelling through every operation; here is what is left to see.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import SECRET, HostileWorkspace

Params = Mapping[str, Any]

READS: dict[str, Callable[[str], Params]] = {
    "read_file": lambda path: {"path": path},
    "read_lines": lambda path: {"path": path, "start": 1},
    "get_diff": lambda path: {"path": path},
    "file_history": lambda path: {"path": path},
    "search_content": lambda path: {"path": path, "pattern": "outside"},
    "get_overview": lambda path: {"path": path},
    "find_references": lambda path: {"path": path, "symbol": "outside"},
    "related_files": lambda path: {"path": path},
    "get_excerpt": lambda path: {"path": path},
    "summarize_file": lambda path: {"path": path},
    "read_symbol": lambda path: {"path": path, "symbol": "outside"},
    "read_enclosing": lambda path: {"path": path, "line": 1},
    "read_content": lambda path: {"path": path, "pattern": "outside"},
}
WRITES: dict[str, Callable[[str], Params]] = {
    "write_file": lambda path: {"path": path, "content": "x\n", "mode": "append"},
    "edit_file": lambda path: {"path": path, "changes": [{"search": "outside", "replace": "x"}]},
    "apply_patch": lambda path: {"path": path, "patch": "@@ -1 +1 @@\n-outside\n+x\n"},
    "delete_file": lambda path: {"path": path},
    "move_file": lambda path: {"source": path, "destination": "taken.txt"},
}
CREATES: dict[str, Callable[[str], Params]] = {
    "write_file": lambda path: {"path": path, "content": "x\n", "mode": "create"},
    "create_directory": lambda path: {"path": path},
    "move_file": lambda path: {"source": "a.txt", "destination": path},
}
SPELT_WRONG = [
    pytest.param("../S", "path_not_canonical", id="1: up and out"),
    pytest.param("a/../../S", "path_not_canonical", id="2: down, up and out"),
    pytest.param("a/../a.txt", "path_not_canonical", id="3: up, staying inside"),
    pytest.param("./../S", "path_not_canonical", id="3: behind a leading dot"),
    pytest.param("a/./b.txt", "path_not_canonical", id="3: a dot in the middle"),
    pytest.param("a//b.txt", "path_not_canonical", id="6: an empty component"),
    pytest.param("/etc/passwd", "path_absolute", id="4: absolute"),
    pytest.param("{twin}/S", "path_absolute", id="5: a folder whose name begins like ours"),
    pytest.param("{work}/../S", "path_not_canonical", id="5: our root, then out"),
    pytest.param("//etc//passwd", "path_absolute", id="6: two slashes"),
    pytest.param("a\0.txt", "path_invalid", id="15: NUL"),
    pytest.param("a\n.txt", "path_invalid", id="16: newline"),
    pytest.param("a\x1b[31m.txt", "path_invalid", id="16: ESC"),
    pytest.param("a\x07.txt", "path_invalid", id="16: BEL"),
    pytest.param("a\x7f.txt", "path_invalid", id="16: DEL"),
    pytest.param("a\x9b.txt", "path_invalid", id="16: a C1 control"),
    pytest.param("a\u2028.txt", "path_invalid", id="16: a line separator"),
    pytest.param("a\u202etxt.b", "path_invalid", id="46: a bidi override"),
    pytest.param("a\u200d.txt", "path_invalid", id="46: a joiner"),
    pytest.param("n" * 256, "path_too_long", id="17: a name of 256 bytes"),
    pytest.param("ü" * 128, "path_too_long", id="17: a name of 128 letters, 256 bytes"),
    pytest.param("/".join(["n" * 99] * 50), "path_too_long", id="17: a path of 5,000 bytes"),
    pytest.param("/".join(["n"] * 3000), "path_too_long", id="17: 3,000 components"),
    pytest.param("e\u0301.txt", "path_not_canonical", id="names: not NFC"),
    pytest.param("", "path_invalid", id="9: empty"),
]


def spelt(hostile: HostileWorkspace, path: str) -> str:
    return path.replace("{twin}", str(hostile.twin)).replace("{work}", str(hostile.work))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("a.txt/", "not_a_directory", id="8: a slash behind a file"),
        pytest.param(".", "not_a_file", id="9: the root"),
        pytest.param("./", "not_a_file", id="9: the root, with a slash"),
        pytest.param("/", "path_absolute", id="9: the machine's root"),
        pytest.param("{work}", "not_a_file", id="9: the root in full"),
        pytest.param("a", "not_a_file", id="36: a directory"),
        pytest.param("a.txt/b", "not_a_directory", id="36: a file in the middle"),
    ],
)
@pytest.mark.parametrize("operation", ["read_file", "get_diff", "file_history", "write_file", "edit_file"])
def test_what_is_no_file(hostile: HostileWorkspace, operation: str, path: str, code: str) -> None:
    hostile.refused(operation, code, **{**READS, **WRITES}[operation](spelt(hostile, path)))


LITERAL = [
    pytest.param("~/.ssh/id_rsa", id="10: home"),
    pytest.param("~root/x", id="10: another's home"),
    pytest.param("$HOME/x", id="10: a variable"),
    pytest.param("${HOME}/x", id="10: a variable in braces"),
    pytest.param("`id`", id="10: a command"),
    pytest.param("file:///etc/passwd", id="11: a URL"),
    pytest.param("\\\\host\\share", id="11: a UNC name"),
    pytest.param("C:\\x", id="11: a drive"),
    pytest.param("%2e%2e/S", id="12: dots in percents"),
    pytest.param("..%2fS", id="12: a slash in percents"),
    pytest.param("%252e%252e/S", id="12: percents twice"),
]


@pytest.mark.parametrize("path", LITERAL)
def test_nothing_is_expanded_or_decoded(hostile: HostileWorkspace, path: str) -> None:
    home = hostile.daemon.home / "x"
    home.write_text(SECRET)
    try:
        hostile.refused("read_file", "denied" if "id_rsa" in path else "not_found", path=path)
        hostile.refused("search_content", "not_found", path=path, pattern="outside")
        hostile.refused("edit_file", "denied" if "id_rsa" in path else "not_found", **WRITES["edit_file"](path))
    finally:
        home.unlink()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("file:///etc/passwd", id="11: a URL"),
        pytest.param("\\\\host\\share", id="11: a UNC name"),
        pytest.param("C:\\x", id="11: a drive"),
        pytest.param("name ", id="18: a space at the end"),
        pytest.param("name.", id="18: a dot at the end"),
        pytest.param("dir./x", id="18: a dot at the end of a directory"),
        pytest.param("dir /x", id="18: a space at the end of a directory"),
        pytest.param("a.txt::$DATA", id="18: a stream"),
        pytest.param("a.txt:hidden", id="18: a named stream"),
    ],
)
@pytest.mark.parametrize("operation", ["write_file", "create_directory", "move_file"])
def test_new_names_that_another_system_reads_differently(hostile: HostileWorkspace, operation: str, path: str) -> None:
    hostile.refused(operation, "path_invalid", **CREATES[operation](path))


@pytest.mark.parametrize("path", ["name.", "dir./x", "a.txt:hidden", "C:\\x"])
def test_new_names_in_the_header_of_a_patch(hostile: HostileWorkspace, path: str) -> None:
    hostile.refused("apply_patch", "path_invalid", patch=f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")


@pytest.mark.parametrize(("path", "code"), [("../S", "path_not_canonical"), ("/etc/passwd", "path_absolute")])
def test_ways_out_in_the_header_of_a_patch(hostile: HostileWorkspace, path: str, code: str) -> None:
    hostile.refused("apply_patch", code, patch=f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{SECRET}\n+x\n")


@pytest.mark.parametrize("end", ["\\ud800", "\\udfff", "\\ud800x"], ids=["14: high", "14: low", "14: half a pair"])
@pytest.mark.parametrize("method", ["read_file", "delete_file"])
def test_lone_surrogates(hostile: HostileWorkspace, method: str, end: str) -> None:
    with hostile.untouched(refusals=1):
        hostile.agent.send(f'{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"path":"a{end}.txt"}}}}'.encode())
        answer = hostile.agent.receive()
    assert answer.code in ("invalid_frame", "invalid_parameter", "path_invalid")
    hostile.tight(answer)
    assert hostile.agent.done("read_file", path="a.txt")["total_lines"] == 3


@pytest.mark.parametrize("method", ["read_file", "delete_file"])
def test_undecodable_bytes(hostile: HostileWorkspace, method: str) -> None:
    with hostile.untouched(refusals=1):
        hostile.agent.send(b'{"jsonrpc":"2.0","id":7,"method":"%s","params":{"path":"a\xff.txt"}}' % method.encode())
        answer = hostile.agent.receive()
    assert answer.code in ("invalid_frame", "invalid_parameter", "path_invalid")
    hostile.tight(answer)
    assert hostile.agent.done("read_file", path="a.txt")["total_lines"] == 3


@pytest.mark.parametrize("name", ["evil\x1b]0;owned\x07", "two\nlines", "del\x7f"], ids=["ESC", "newline", "DEL"])
def test_a_bad_name_is_escaped_wherever_it_is_kept(hostile: HostileWorkspace, name: str) -> None:
    mark = hostile.head()
    hostile.refused("write_file", "path_invalid", path=name, content="x", mode="create")
    noted = hostile.refusals_since(mark)
    shown = noted[0]["event"]["paths"][0]
    assert shown.isprintable()
    assert name not in shown
    assert name not in hostile.daemon.log


def test_names_on_disk_that_break_the_rule_are_listed_escaped_and_never_opened(hostile: HostileWorkspace) -> None:
    bad = hostile.work / "odd"
    bad.mkdir()
    raw = b"new\nline", b"\xff\xfe", b"up\xe2\x80\xae"
    for name in raw:
        Path(os.fsdecode(bytes(bad) + b"/" + name)).write_text(SECRET)
    listing = hostile.agent.done("list_files", path="odd")
    assert len(listing["entries"]) == len(raw)
    for entry in listing["entries"]:
        assert entry["@type"] == "OtherEntry"
        assert entry["name"].isprintable()
    found = hostile.agent.call("search_content", path="odd", pattern="outside")
    assert found.result["total"] == 0
    assert SECRET.encode() not in found.raw
