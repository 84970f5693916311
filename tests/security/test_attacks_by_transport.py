"""The table of attacks: each bad path through every operation and every command that takes one, over each transport."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from orchestrator.api import parameters as p
from orchestrator.api.operations import OPERATIONS
from tests.security.hostile_workspace import SECRET, Answer, HostileWorkspace
from tests.security.test_kinds import LINKS, links
from tests.security.test_paths import CREATES, LITERAL, READS, SPELT_WRONG, WRITES, spelt
from tests.security.test_protected import DENIED
from tests.security.transports import COMMANDS, EVERY_COMMAND, NAMES, CommandLine, Transport, transport

__all__ = ["links"]

Call = Callable[[str], Mapping[str, Any]]

NATIVE = {"client": "c", "tool": "T", "call": "1"}

LOOKS: dict[str, Call] = {
    "list_files": lambda path: {"path": path},
    "find_files": lambda path: {"path": path, "glob": "*"},
    "directory_stats": lambda path: {"path": path},
    "file_info": lambda path: {"path": path},
    "blame": lambda path: {"path": path},
    "stale_readers": lambda path: {"path": path},
    "tag_file": lambda path: {"path": path, "tags": ["seen"]},
    "journal_query": lambda path: {"path": path},
    "run_command": lambda path: {"cwd": path, "argv": ["true"]},
    "native_before": lambda path: {**NATIVE, "path": path, "kind": "read"},
    "native_after": lambda path: {**NATIVE, "path": path, "kind": "read"},
    "report_tool_call": lambda path: {**NATIVE, "state": "asks", "kind": "read", "paths": [path]},
}
BY_PEOPLE: dict[str, Call] = {
    "content_at": lambda path: {"path": path, "at": "@1"},
    "journal_export": lambda path: {"path": path},
    "journal_redact": lambda path: {"path": path, "blob": "@1"},
    "policy_explain": lambda path: {"path": path, "action": "read"},
    "list_tags": lambda path: {"path": path},
}
CHANGES = [*WRITES.items(), *CREATES.items()]
OF_SEVERAL: dict[str, Call] = {"read_files": lambda path: {"paths": [path]}}
"""Each file has a refusal of its own, in the answer."""
CALLS = [*LOOKS.items(), *READS.items(), *CHANGES, *OF_SEVERAL.items(), *BY_PEOPLE.items()]
BY_GLOB: dict[str, Call] = {
    "list_files": lambda glob: {"globs": [glob], "recursive": True, "include_hidden": True},
    "find_files": lambda glob: {"glob": glob},
    "directory_stats": lambda glob: {"globs": [glob]},
    "search_content": lambda glob: {"globs": [glob], "pattern": "outside"},
    "find_references": lambda glob: {"globs": [glob], "symbol": "outside"},
    "changes_since": lambda glob: {"globs": [glob], "version": "@1"},
    "rollback": lambda glob: {"globs": [glob], "preview": True},
    "reserve_paths": lambda glob: {"globs": [glob], "ttl_s": 1},
}

NO_PATH_OF_THE_WORKSPACE = {
    ("policy_check", "source"),  # what the caller calls the text that it sends
    ("policy_simulate", "source"),
    ("journal_backup", "directory"),  # a person's own folder, outside; in the workspace it is refused
    ("journal_unarchive", "file"),  # compared with the name of the newest
    ("native_before", "outside"),  # where a command runs that a person is asked about; shown, never opened
}
NEVER_CALLED = {("approve", "pattern")}  # a grant for what a request asks; there is none
BY_HAND = {
    *("up", "stop", "mcp", "completion", "approver reset", "policy init", "journal adopt", "journal reset"),
    *("approvals show", "approvals answer", "conflicts show", "commit", "connect", "disconnect", "doctor"),
    *("hook", "run"),
    *("policy test", "journal restore", "replay"),  # files and folders of the caller's own, opened as the caller
}
"""Commands that are no operation with its parameters; none takes a path of the workspace."""


def test_the_table_has_every_operation_that_takes_a_path() -> None:
    in_table = {(name, key) for name, made in CALLS for key, value in made("a/b").items() if value in ("a/b", ["a/b"])}
    assert in_table == set(taking(p.AnyPath)) - NO_PATH_OF_THE_WORKSPACE
    assert {*BY_GLOB} == {name for name, _ in {*taking(p.GlobText)} - NEVER_CALLED}


def test_every_command_is_one_of_an_operation_or_known_by_hand() -> None:
    assert {*EVERY_COMMAND} - {*COMMANDS} == BY_HAND


def taking(kind: Any) -> Iterator[tuple[str, str]]:
    """The operations with a parameter of this kind, and its name."""
    for operation in OPERATIONS:
        for name, hint in get_type_hints(operation.struct, include_extras=True).items():
            if _holds(hint, kind.__metadata__[0]):
                yield operation.name, name


def _holds(hint: Any, mark: object) -> bool:
    return mark in getattr(hint, "__metadata__", ()) or any(_holds(part, mark) for part in get_args(hint))


# --- the attacks --------------------------------------------------------------------------

KINDS = [
    pytest.param("chain", "symlink_refused", id="21: a link to a link out"),
    pytest.param("up", "symlink_refused", id="23: a link to the folder above"),
    pytest.param("up/new.txt", "symlink_refused", id="25: a new file behind it"),
    pytest.param("dangling_dir/new.txt", "symlink_refused", id="25: a new file behind a link to nothing"),
    pytest.param("swapped/S", "symlink_refused", id="28: a folder that was read and is a link now"),
    pytest.param("swapped/new.txt", "symlink_refused", id="29: a new file in it"),
    pytest.param("fifo", "not_a_regular_file", id="33: a FIFO"),
    pytest.param("character", "not_a_regular_file", id="35: /dev/zero as a node"),
    pytest.param("block", "not_a_regular_file", id="36: a block device"),
    pytest.param("sock", "not_a_regular_file", id="36: a socket"),
    pytest.param("a.txt/b", "not_a_directory", id="36: a file in the middle"),
    pytest.param("huge.log", "too_large", "binary_file", "version_not_kept", id="37: a sparse terabyte"),
    pytest.param("own/state", "not_found", "changed_while_written", None, id="58: the daemon's own, by hard link"),
]
OR_ELSE: dict[str, str | None] = {
    "list_files": "not_a_directory",
    "find_files": "not_a_directory",
    "directory_stats": "not_a_directory",
    "create_directory": "already_exists",
    "run_command": "not_a_directory",
    "journal_redact": "not_redactable",
    "content_at": "not_found",
    **dict.fromkeys(
        (
            "file_info",
            "file_history",
            "stale_readers",
            "journal_query",
            "journal_export",
            "policy_explain",
            "list_tags",
            "tag_file",
            "native_after",
            "report_tool_call",
        )
    ),
}
"""What operations say of what stands there that are not about a file's content; None: an answer, about the name."""

NOTHING_ELSE: Mapping[str, str | None] = {}

CANARIES = (SECRET.encode(), b"root:x:", b"PATH=", b"SQLite format 3")
"""Of every file outside that a link leads to."""


@pytest.fixture(scope="module")
def kinds(hostile: HostileWorkspace, links: Path) -> Iterator[Path]:
    work = links
    (work / "chain").symlink_to("chain_2")
    (work / "chain_2").symlink_to("relative")
    (work / "swapped").mkdir()
    (work / "swapped" / "S").write_text("outside\n")
    assert hostile.agent.done("read_file", path="swapped/S")["total_lines"] == 1
    (work / "swapped").rename(hostile.base / "moved-away")
    (work / "swapped").symlink_to(hostile.twin)
    (work / "own").mkdir()
    (work / "own" / "state").hardlink_to(hostile.daemon.state_dir / "daemon.lock")
    (work / "huge.log").touch()
    os.truncate(work / "huge.log", 1 << 40)
    os.mkfifo(work / "fifo")
    for name, kind, number in (("character", stat.S_IFCHR, (1, 5)), ("block", stat.S_IFBLK, (7, 0))):
        try:
            os.mknod(work / name, kind | 0o666, os.makedev(*number))
        except PermissionError:  # that needs root; a FIFO in its place is still no regular file
            os.mkfifo(work / name)
    holder = os.open(work / "fifo", os.O_RDWR | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(work / "sock"))
        listening.listen()
        listening.setblocking(False)
        os.write(holder, SECRET.encode())
        yield work
        with pytest.raises(BlockingIOError):  # nobody connected
            listening.accept()
    assert os.read(holder, 100) == SECRET.encode(), "the bytes are still there for who they are meant for"
    os.close(holder)


# --- through every transport --------------------------------------------------------------

Rows = list[tuple[str, frozenset[str | None]]]
"""Paths, with the codes that one of which must come; None: an answer."""


@pytest.fixture(scope="module", params=NAMES)
def caller(request: pytest.FixtureRequest, hostile: HostileWorkspace) -> Iterator[Transport]:
    with transport(request.param, hostile) as made:
        yield made


def rows(table: Iterable[Any], *codes: str) -> Rows:
    """The paths of a table, each with these codes or with its own."""
    return [(str(row.values[0]), frozenset(codes or row.values[1:])) for row in table]


def attack(
    hostile: HostileWorkspace,
    caller: Transport,
    calls: Iterable[tuple[str, Call]],
    bad: Rows,
    or_else: Mapping[str, str | None] = NOTHING_ELSE,
) -> None:
    """Every bad path through every call: an expected code, nothing of outside in any answer, and no file changed."""
    wrong, tried, refused, before = list[tuple[str, str, str | None]](), 0, 0, hostile.head()
    away = caller.turned_away
    with hostile.untouched():
        for name, params in calls:
            for way in caller.ways(name):
                for path, codes in bad:
                    if isinstance(caller, CommandLine) and "\0" in path:
                        continue  # no argument of a command can hold it
                    answer = caller.call(way, **params(spelt(hostile, path)))
                    assert not [canary for canary in CANARIES if canary in answer.raw], (way, path, answer.raw[:600])
                    tried += 1
                    if answer.code is not None:
                        hostile.tight(answer)
                    code = answer.code or (told_of_it(answer, codes) if name in OF_SEVERAL else None)
                    refused += code is not None
                    if code not in codes and (name not in or_else or code != or_else[name]):
                        wrong.append((way, path[:60], code))
    assert wrong == []
    refused += caller.turned_away - away
    noted = hostile.refusals_since(before)
    assert (len(noted), SECRET in json.dumps(noted)) == (refused, False)
    assert hostile.head() - before >= tried > 0, "every call is an event"


def told_of_it(answer: Answer, codes: Iterable[str | None]) -> str | None:
    """Which of the codes the answer has for the one file that was asked for."""
    return next((code for code in codes if code is not None and code.encode() in answer.raw), None)


def test_spellings(hostile: HostileWorkspace, caller: Transport) -> None:
    attack(hostile, caller, CALLS, rows(SPELT_WRONG))


def test_names_that_nothing_expands_or_decodes(hostile: HostileWorkspace, caller: Transport) -> None:
    attack(hostile, caller, READS.items(), rows(LITERAL, "not_found", "denied"))


def test_links_and_what_is_no_file(hostile: HostileWorkspace, caller: Transport, kinds: Path) -> None:
    every = rows(LINKS, "symlink_refused") + rows(KINDS)
    own_tools = ("native_before", LOOKS["native_before"])  # a client may read a file of any size by itself
    attack(hostile, caller, [call for call in CALLS if call != own_tools], every, OR_ELSE)
    others = [row for row in every if row[0] != "huge.log"]
    attack(hostile, caller, [own_tools, ("file_info", LOOKS["file_info"])], others, OR_ELSE)


def test_links_in_the_header_of_a_patch(hostile: HostileWorkspace, caller: Transport, kinds: Path) -> None:
    def in_header(path: str) -> Mapping[str, Any]:
        return {"patch": f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-outside\n+x\n"}

    attack(hostile, caller, [("apply_patch", in_header)], rows(KINDS))


def test_protected_names(hostile: HostileWorkspace, caller: Transport) -> None:
    attack(hostile, caller, CHANGES, rows(DENIED, "denied", "path_invalid", "path_not_canonical"))


def test_globs(hostile: HostileWorkspace, caller: Transport, kinds: Path) -> None:
    """They choose among the workspace's files, whatever they say."""
    globs = ["../**", "up/**", "evil/*", "swapped/*", "/etc/*", "{twin}/*", "a/../../S", "fifo", "own/*"]
    codes = frozenset((None, "invalid_parameter", "nothing_to_change", "symlink_refused"))
    attack(hostile, caller, BY_GLOB.items(), [(glob, codes) for glob in globs])


def test_a_command_below_the_root_gives_no_other_way_out(hostile: HostileWorkspace, kinds: Path) -> None:
    """What is typed there is relative to that folder; `..` may lead to another of the workspace, and no further."""
    with closing(CommandLine(hostile, cwd=hostile.work / "a")) as below:
        bad = {
            "../../S": "path_not_canonical",
            "../../work/../S": "path_not_canonical",
            "../up/S": "symlink_refused",
            "../swapped/S": "symlink_refused",
            "../fifo": "not_a_regular_file",
        }
        relative = [(name, made) for name, made in CALLS if "path" in made("")]
        attack(hostile, below, relative, [(path, frozenset((code,))) for path, code in bad.items()], OR_ELSE)
        assert below.call("open", path="../a.txt").code is None
