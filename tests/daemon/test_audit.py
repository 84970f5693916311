"""Who did what, asked of a real daemon: filters, pages, exports, and that no secret is in any of them."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from orchestrator.api.journal_operations import JournalEntry
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.core.ids import written
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.ocsf import problems
from tests.extensions.packages import PLUGINS

pytestmark = pytest.mark.anyio

MARK = "zq-marker-7731"


class History:
    """What a mixed history was made of."""

    task = ""
    alice = ""
    change = ""


ASKED = """
name = "asked"
extends = "default"

[[rule]]
name = "delete-or-move-own"
agents = ["*"]
actions = ["delete", "move"]
paths = ["**"]
verdict = "ask"
"""


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """One whose policy asks before any file is deleted or moved."""
    (base / "state").mkdir()
    (base / "state/policy.toml").write_text(ASKED)
    with running(base) as started:
        yield started


@pytest.fixture
async def history(daemon: RunningDaemon) -> AsyncIterator[tuple[FileAccess, History]]:
    """Two agents: reads, a search, edits, a move, a refusal, an approval that waits, a task; then a person asks."""
    work, made = daemon.workspace, History()
    (work / "a.txt").write_text("one\ntwo\n")
    (work / ".env").write_text("KEY=1\n")
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        made.alice = alice.session
        await alice.read_file("a.txt")
        await alice.write_file("b.txt", "needle\n", mode="create")
        made.task = (await alice.begin_task("mend a")).task
        made.change = (await alice.edit_file("a.txt", [Replacement(search="two", replace="2")])).change or ""
        await bob.search_content("needle")
        moving = await alice.move_file("b.txt", "c.txt")
        await person.approve(moving.approval or "", approver=code, unseen=True)
        await alice.end_task(made.task, outcome="done")
        await alice.write_file("d.txt", "x\n", mode="create", reason="=1+1")
        for call in (bob.read_file(".env"), bob.read_file("gone.txt")):
            with pytest.raises(RemoteError):
                await call
        version = (await bob.file_info(".env")).version_id
        waiting = await bob.write_file(".env", f"KEY={MARK}\n", mode="truncate", base=version)
        assert waiting.status == "waiting"
        await bob.write_file("e.txt", "x\n", mode="create")
        deleting = await bob.delete_file("e.txt")
        await person.approve(deleting.approval or "", approver=code, unseen=True)
    async with daemon.client() as person:
        while len([line for line in (await person.status()).sessions if line.open]) > 1:
            await anyio.lowlevel.checkpoint()  # the daemon notes the end of a session after its client is gone
        yield person, made


async def everything(person: FileAccess, **filters: Any) -> list[JournalEntry]:
    page = await person.journal_query(limit=500, **filters)
    assert page.cursor is None
    return list(page.entries)


def reported(entries: list[JournalEntry]) -> list[str]:
    return [f"{entry.agent or '-'} {entry.operation or '-'} {entry.kind}" for entry in reversed(entries)]


BOBS = (("bob", "write_file"), ("bob", "delete_file"))
FILTERS: list[Any] = [
    pytest.param(
        {"path": "a.txt", "agent": "alice"},
        [
            "alice read_file file_read",
            "alice edit_file change_intended",
            "alice edit_file change_applied",
        ],
        id="path: reads and changes",
    ),
    pytest.param({"path": "b.txt", "agent": "bob"}, ["bob search_content content_searched"], id="path: searches"),
    pytest.param({"path": "gone.txt"}, ["bob read_file read_refused"], id="path: refusals"),
    pytest.param(
        {"path": ".env", "agent": "bob"},
        ["bob read_file read_refused", "bob file_info metadata_read", "bob write_file approval_requested"],
        id="path: approvals",
    ),
    pytest.param(
        {"path": "b.txt", "agent": "alice"},
        [
            "alice write_file change_intended",
            "alice write_file change_applied",
            "alice move_file approval_requested",
            "alice move_file change_intended",
            "alice move_file change_applied",
        ],
        id="path: where it was moved from",
    ),
    pytest.param({"path": "nothing"}, [], id="path: unknown"),
    pytest.param({"outcome": "denied"}, ["bob read_file read_refused"], id="outcome: denied"),
    pytest.param({"outcome": "refused"}, ["bob read_file read_refused"], id="outcome: refused"),
    pytest.param(
        {"outcome": "waiting"},
        [f"{who} {name} approval_requested" for who, name in (("alice", "move_file"), *BOBS)],
        id="outcome: waiting",
    ),
    pytest.param({"outcome": "granted", "path": "e.txt"}, ["{person} approve approval_granted"], id="path: a yes"),
    pytest.param(
        {"outcome": "applied", "agent": "alice"},
        [f"alice {name} change_applied" for name in ("write_file", "edit_file", "move_file", "write_file")],
        id="outcome: applied",
    ),
    pytest.param({"outcome": "applied", "kind": "file_read"}, [], id="outcome and kind that exclude each other"),
    pytest.param(
        {"outcome": "answered", "kind": "file_read"}, ["alice read_file file_read"], id="outcome and kind that agree"
    ),
    pytest.param({"since": "2001-01-01", "kind": "file_read"}, ["alice read_file file_read"], id="since: a date"),
    pytest.param({"since": "2999-01-01T00:00Z"}, [], id="since: the future"),
    pytest.param({"until": "2001-01-01T00:00:00+01:00"}, [], id="until: the past"),
    pytest.param({"until": 1}, ["- - policy_loaded"], id="until: a bare number is a position"),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
async def test_a_filter_finds_what_it_names(
    history: tuple[FileAccess, History], filters: dict[str, Any], expected: list[str]
) -> None:
    person = history[0]
    assert reported(await everything(person, **filters)) == [line.format(person=person.agent) for line in expected]


async def test_a_task_is_what_its_session_did_and_what_carries_it(history: tuple[FileAccess, History]) -> None:
    person, made = history
    entries = await everything(person, task=made.task)
    assert reported(entries) == [
        "alice begin_task task_begun",
        "alice edit_file change_intended",
        "alice edit_file change_applied",
        "alice move_file approval_requested",
        "alice move_file change_intended",
        "alice move_file change_applied",
        "alice end_task task_ended",
    ]
    assert entries[-1].seq == made.task
    with pytest.raises(RemoteError) as refused:
        await person.journal_query(task=made.change)
    assert refused.value.code == "version_unknown"


async def test_positions_bound_a_query_on_both_sides(history: tuple[FileAccess, History]) -> None:
    person, _ = history
    seqs = [entry.seq for entry in await everything(person)]
    assert [entry.seq for entry in await everything(person, since=seqs[7], until=seqs[3])] == seqs[3:8]
    first, last = seqs[7].removeprefix("@"), int(seqs[3].removeprefix("@"))
    assert [entry.seq for entry in await everything(person, since=first, until=last)] == seqs[3:8]


async def test_times_bound_a_query_on_both_sides(history: tuple[FileAccess, History]) -> None:
    person, _ = history
    entries = await everything(person)
    first, last = entries[9].at, entries[4].at
    expected = [entry.seq for entry in entries if first <= entry.at <= last]
    assert [entry.seq for entry in await everything(person, since=written(first), until=written(last))] == expected


@pytest.mark.parametrize("moment", ["yesterday", "@x", "2026-13-01", "", "9" * 40, "1700000000000"])
async def test_what_is_no_moment_is_refused(daemon: RunningDaemon, moment: str) -> None:
    async with daemon.client() as person:
        with pytest.raises(RemoteError) as refused:
            await person.journal_query(since=moment)
        assert refused.value.code == "invalid_parameter"


async def test_an_agent_sees_its_own_session_whatever_it_asks_for(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await bob.read_file("a.txt")
        task = (await bob.begin_task("mine")).task
        await alice.file_info("a.txt")
        asked: list[dict[str, Any]] = [
            {"path": "a.txt"},
            {"task": task},
            {"outcome": "answered"},
            {"since": "2001-01-01"},
        ]
        for filters in asked:
            for entry in (await alice.journal_query(limit=500, **filters)).entries:
                assert entry.session == alice.session, filters
        with pytest.raises(RemoteError) as refused:
            await alice.journal_export()
        assert refused.value.code == "not_permitted"


async def test_an_entry_says_who_how_long_and_from_what_to_what(history: tuple[FileAccess, History]) -> None:
    person, made = history
    (edited,) = await everything(person, kind="change_applied", path="a.txt")
    assert (edited.session, edited.operation, edited.cause, edited.outcome) == (
        made.alice,
        "edit_file",
        made.change,
        "applied",
    )
    assert edited.arguments == {"path": "a.txt", "changes": [{"search": {"bytes": 3}, "replace": {"bytes": 1}}]}
    assert edited.took_us is not None
    assert edited.took_us > 0
    (path,) = edited.paths
    assert path.after == edited.seq
    assert path.before is not None
    assert path.before_hash is not None
    assert path.after_hash is not None
    (read,) = await everything(person, kind="file_read")
    assert read.tokens
    (asked,) = await everything(person, outcome="waiting", path=".env")
    assert asked.approval == asked.seq


async def test_a_cursor_stays_while_events_come(history: tuple[FileAccess, History], daemon: RunningDaemon) -> None:
    person, _ = history
    before = [entry.seq for entry in await everything(person, agent="bob")]
    first = await person.journal_query(agent="bob", limit=2)
    async with daemon.client("bob") as bob:
        await bob.list_files()
    rest = await person.journal_query(agent="bob", limit=500, cursor=first.cursor)
    assert [entry.seq for entry in (*first.entries, *rest.entries)] == before


# --- exports -----------------------------------------------------------------------------------


async def exported(person: FileAccess, *, limit: int = 7, **filters: Any) -> str:
    text, after, more = "", "@0", True
    while more:
        page = await person.journal_export(after=after, limit=limit, **filters)
        text, after, more = text + page.text, page.after, page.more
    return text


def exported_by_the_command_line(daemon: RunningDaemon) -> str:
    code, text = cli(daemon, "journal", "export")
    assert code == 0, text
    return text


@pytest.mark.parametrize(
    "filters", [{}, {"path": "a.txt"}, {"agent": "bob"}, {"outcome": "applied"}, {"kind": "file_read"}], ids=str
)
async def test_json_lines_are_the_entries_of_a_query(
    history: tuple[FileAccess, History], filters: dict[str, Any]
) -> None:
    person, _ = history
    filters = {"until": (await person.status()).head, **filters}  # each look is an event, too
    lines = (await exported(person, **filters)).splitlines()
    entries = [msgspec.json.decode(line, type=JournalEntry) for line in lines]
    assert entries == (await everything(person, **filters))[::-1]
    assert entries


async def test_ocsf_lines_keep_to_the_schema(history: tuple[FileAccess, History], daemon: RunningDaemon) -> None:
    person, _ = history
    text = await exported(person)
    program = [sys.executable, "-I", str(PLUGINS / "ocsf" / "ocsf.py"), "--root", str(daemon.workspace)]
    made = await anyio.run_process(program, input=text.encode())
    events = [json.loads(line) for line in made.stdout.splitlines()]
    assert [problem for event in events for problem in problems(event)] == []
    assert {event["actor"]["user"]["type_id"] for event in events} == {0, 4}
    assert len({event["metadata"]["uid"] for event in events}) == len(events)
    short = [(event["activity_name"], event["file"]["name"], event["status_id"]) for event in events]
    for expected in (
        ("Read", "a.txt", 1),
        ("Update", "a.txt", 1),
        ("Read", "b.txt", 1),
        ("Rename", "b.txt", 1),
        ("Create", "d.txt", 1),
        ("Read", ".env", 2),
        ("Get Attributes", ".env", 1),
        ("Delete", "e.txt", 1),
    ):
        assert short.count(expected) == 1, (expected, short)
    rename = next(event for event in events if event["activity_name"] == "Rename")
    assert rename["file_result"]["path"] == str(daemon.workspace / "c.txt")
    assert rename["actor"]["user"]["name"] == "alice"


async def test_no_secret_is_in_what_the_journal_gives_out(
    history: tuple[FileAccess, History], daemon: RunningDaemon
) -> None:
    person, _ = history
    (daemon.workspace / "s.txt").write_text(f"key {MARK}\n")
    async with daemon.client("alice") as alice:
        await alice.read_file("s.txt")
        await alice.edit_file("s.txt", [Replacement(search=MARK, replace=f"{MARK}-2")])
        await alice.write_file("t.txt", MARK, mode="create")
        with pytest.raises(RemoteError):
            await alice.edit_file("s.txt", [Replacement(search=f"{MARK}-3", replace=MARK)])
        own = await alice.journal_query(limit=500)
        assert MARK not in msgspec.json.encode(own).decode()
    assert MARK not in await exported(person)
    assert MARK not in exported_by_the_command_line(daemon)
    assert MARK not in daemon.log
    connection = sqlite3.connect(f"file:{daemon.state_dir / 'journal.db'}?mode=ro", uri=True)
    details = [row[0] for row in connection.execute("SELECT details FROM events WHERE details IS NOT NULL")]
    connection.close()
    assert len(details) > 10
    assert not [one for one in details if MARK.encode() in one]
    problems_found = (await person.journal_verify()).problems
    assert problems_found == ()


@pytest.mark.parametrize("filters", [{}, *(param.values[0] for param in FILTERS)], ids=str)
async def test_pages_of_any_size_give_each_event_once(
    history: tuple[FileAccess, History], filters: dict[str, Any]
) -> None:
    person, _ = history
    filters = {"until": (await person.status()).head, **filters}  # each look is an event, too
    expected = [entry.seq for entry in await everything(person, **filters)]
    for limit in (1, 2, 5):
        paged: list[str] = []
        page = await person.journal_query(limit=limit, **filters)
        paged += [entry.seq for entry in page.entries]
        while page.cursor is not None:
            page = await person.journal_query(limit=limit, cursor=page.cursor, **filters)
            paged += [entry.seq for entry in page.entries]
        assert paged == expected


SHOWS = """
name = "shows"
default = "allow"

[journal]
shows = "{shows}"

[[rule]]
name = "names"
agents = ["alice"]
actions = ["list"]
paths = ["hidden.txt"]
verdict = "deny"
"""


@pytest.mark.parametrize(
    ("shows", "seen"),
    [
        pytest.param("session", set(), id="its session's"),
        pytest.param("agent", {("alice", "a.txt")}, id="its other sessions' too"),
        pytest.param("everybody", {("alice", "a.txt"), ("bob", "b.txt")}, id="everybody's, of paths that it may list"),
    ],
)
async def test_an_agent_sees_others_events_where_policy_says_so(
    base: Path, shows: str, seen: set[tuple[str, str]]
) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(SHOWS.format(shows=shows))
    with running(base):
        async with daemon.client("alice") as before, daemon.client("bob") as bob:
            await before.write_file("a.txt", "one\n", mode="create", reason="mine")
            await bob.write_file("b.txt", "one\n", mode="create", reason="a reason of bob's")
            await bob.write_file("hidden.txt", "one\n", mode="create")
        async with daemon.client("alice") as alice:
            page = await alice.journal_query(kind="change_applied")
            assert {(entry.agent, entry.paths[0].path) for entry in page.entries} == seen
            assert page.unlisted == (1 if shows == "everybody" else 0)
            whole = (await alice.journal_query(limit=500)).entries
            assert not any(entry.arguments for entry in whole if entry.session != alice.session)
            assert "a reason of bob's" not in repr(whole)
            assert "hidden.txt" not in repr(whole)
            if shows != "everybody":
                beyond: dict[str, Any] = {"session": bob.session} if shows == "session" else {"agent": "bob"}
                with pytest.raises(RemoteError) as refused:
                    await alice.journal_query(**beyond)
                assert refused.value.code == "not_permitted"
            for guess in ("hidden.txt", "absent.txt"):  # which of them is there can't be told from the answer
                asked = await alice.journal_query(path=guess)
                assert (asked.entries, asked.unlisted, asked.cursor) == ((), 0, None)
