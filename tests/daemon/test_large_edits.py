"""Passages of files beyond the size that is held in memory, through the daemon: changed, undone, cut off."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.core.errors import DaemonRestarted
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """
name = "ours"
default = "allow"
[limits]
in_memory_bytes = 262144
[[rule]]
name = "careful"
agents = ["carol"]
actions = ["write"]
paths = ["**"]
verdict = "ask"
"""
LINES = 20_000


def line(number: int) -> str:
    return f"{number:05} request {'x' * (number % 70)}"


class Log:
    """A file of a million bytes, and the lines that it should have."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.path = daemon.workspace / "app.log"
        self.lines = [line(number) for number in range(1, LINES + 1)]
        self.path.write_text(self.text)

    @property
    def text(self) -> str:
        return "".join(f"{one}\n" for one in self.lines)

    def holds(self) -> None:
        assert self.path.read_text() == self.text


@pytest.fixture
def large(base: Path) -> Iterator[RunningDaemon]:
    """A daemon that holds no file over 256 KiB in memory."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    with running(base) as daemon:
        yield daemon


@pytest.fixture
def log(large: RunningDaemon) -> Log:
    return Log(large)


@pytest.fixture
async def alice(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client("alice") as files:
        yield files


@pytest.fixture
async def bob(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client("bob") as files:
        yield files


def made(answer: ChangeAnswer) -> str:
    """The version of a change that was made."""
    assert answer.status == "applied", answer.message
    assert answer.change is not None
    return answer.change


async def whole(daemon: RunningDaemon) -> None:
    """Journal, tables and disk say the same."""
    async with daemon.client() as person:
        assert (await person.replay_check()).ok
        verified = await person.journal_verify()
        assert verified.ok, verified.problems
        assert (await person.workspace_check()).ok


async def test_passages_of_every_form(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    answer = await alice.edit_file("app.log", [Replacement(search="09000 request", replace="09000 answer")])
    log.lines[8_999] = log.lines[8_999].replace("request", "answer")
    log.holds()
    (written,) = answer.paths[0].written
    assert (answer.rung, written.start, written.end) == ("current", 9_000, 9_000)

    changes = [
        Replacement(start=100, end=101, expect=f"{line(100)}\n{line(101)}", replace="one\ntwo\nthree"),
        Replacement(search="15000 ", replace="fifteen "),
    ]
    made(await alice.edit_file("app.log", changes))
    log.lines[14_999] = log.lines[14_999].replace("15000", "fifteen")
    log.lines[99:101] = ["one", "two", "three"]
    log.holds()

    made(await alice.write_file("app.log", "the end\n", mode="append"))
    log.lines.append("the end")
    log.holds()

    await alice.read_lines("app.log", start=5_000, end=5_002)
    before, old, after = log.lines[4_999:5_002]
    patch = f"--- a/app.log\n+++ b/app.log\n@@ -7,3 +7,3 @@\n {before}\n-{old}\n+patched\n {after}\n"
    made(await alice.apply_patch(patch))
    log.lines[5_000] = "patched"
    log.holds()

    begin = f"*** Begin Patch\n*** Update File: app.log\n@@\n-{line(700)}\n+seven hundred\n*** End Patch\n"
    made(await alice.apply_patch(begin))
    log.lines[log.lines.index(line(700))] = "seven hundred"
    log.holds()
    await whole(large)


async def test_only_what_is_other_is_kept(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    for number in range(1, 6):
        made(await alice.edit_file("app.log", [Replacement(search=line(number), replace=f"changed {number}")]))
    blobs = [file for file in (large.state_dir / "blobs").rglob("*") if file.is_file()]
    assert len(blobs) == 1  # the first version; the others are splices of it, in the database


async def test_many_changes_are_kept_whole_now_and_then(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    long = "y" * 400_000
    changes = []
    for number in range(1, 5):
        answer = await alice.edit_file("app.log", [Replacement(search=line(number), replace=f"{number} {long}")])
        changes.append(made(answer))
        log.lines[number - 1] = f"{number} {long}"
    log.holds()
    blobs = [file for file in (large.state_dir / "blobs").rglob("*") if file.is_file()]
    assert len(blobs) == 2
    for number, change in enumerate(reversed(changes)):
        assert (await alice.revert(change)).status == "applied"
        log.lines[3 - number] = line(4 - number)
        log.holds()
    await whole(large)


async def test_one_change_is_undone_and_the_others_stay(
    large: RunningDaemon, log: Log, alice: FileAccess, bob: FileAccess
) -> None:
    first = made(await alice.edit_file("app.log", [Replacement(search=line(100), replace="alice\nwas here")]))
    made(await bob.edit_file("app.log", [Replacement(search=line(50), replace="bob")]))
    last = made(await bob.edit_file("app.log", [Replacement(search=line(15_000), replace="bob again\nand again")]))
    undone = await alice.revert(first)
    assert (undone.status, undone.rung) == ("applied", "merged")
    assert (undone.added, undone.removed) == (None, None)  # its lines were not compared
    log.lines[14_999:15_000] = ["bob again", "and again"]
    log.lines[49] = "bob"
    log.holds()
    rolled = await bob.rollback(agent="bob")
    assert rolled.status == "applied"
    assert [(file.added, file.removed) for file in rolled.files] == [(None, None)]
    log.lines = [line(number) for number in range(1, LINES + 1)]
    log.holds()
    with pytest.raises(RemoteError) as nothing:
        await alice.revert(last)
    assert nothing.value.code == "nothing_to_change"
    await whole(large)


async def test_an_undo_on_the_command_line_claims_no_number_of_lines(large: RunningDaemon, log: Log) -> None:
    code, answer = command(large, "edit", "app.log", "--search", line(100), "--replace", "one")
    assert (code, answer["added"], answer["removed"]) == (0, 1, 1)
    code, said = cli(large, "revert", answer["change"])
    assert code == 0, said
    assert "(+" not in said
    log.holds()


async def test_an_undo_of_lines_that_others_changed_waits(log: Log, alice: FileAccess, bob: FileAccess) -> None:
    first = made(await alice.edit_file("app.log", [Replacement(search=line(100), replace="alice")]))
    made(await bob.edit_file("app.log", [Replacement(search="alice", replace="alice and bob")]))
    assert (await alice.revert(first)).status == "conflict"
    log.lines[99] = "alice and bob"
    log.holds()


async def test_a_stale_base(log: Log, alice: FileAccess, bob: FileAccess) -> None:
    """Where the passage stands elsewhere as it was it is changed there; else nothing is."""
    made(await bob.edit_file("app.log", [Replacement(search=line(1), replace="one")]))
    seen = (await alice.read_lines("app.log", start=200, end=202)).version_id
    made(await bob.edit_file("app.log", [Replacement(search=line(2), replace="two\nand more\nlines")]))
    made(await bob.edit_file("app.log", [Replacement(search=line(300), replace="bob was here")]))
    log.lines[299] = "bob was here"
    log.lines[0:2] = ["one", "two", "and more", "lines"]

    by_text = await alice.edit_file("app.log", [Replacement(search=line(201), replace="alice")], base=seen)
    assert (by_text.status, by_text.rung) == ("applied", "shifted")
    log.lines[log.lines.index(line(201))] = "alice"
    log.holds()
    named = Replacement(start=203, end=203, expect=line(203), replace="by number")
    by_number = await alice.edit_file("app.log", [named], base=seen)
    assert (by_number.status, by_number.rung) == ("applied", "shifted")
    log.lines[log.lines.index(line(203))] = "by number"
    log.holds()
    with pytest.raises(RemoteError) as refused:
        await alice.edit_file("app.log", [Replacement(search=line(300), replace="alice too")], base=seen)
    assert refused.value.code == "stale_base"
    assert "search_content" in (refused.value.hint or "")
    log.holds()


async def test_refusals_name_the_lines_of_the_file(log: Log, alice: FileAccess) -> None:
    log.lines[9_000] = log.lines[12_000] = "the same"
    log.path.write_text(log.text)
    with pytest.raises(RemoteError) as ambiguous:
        await alice.edit_file("app.log", [Replacement(search="the same", replace="other")])
    assert ambiguous.value.code == "search_ambiguous"
    assert ambiguous.value.details["lines"] == [9_001, 12_001]
    assert "lines 9001, 12001" in str(ambiguous.value)
    with pytest.raises(RemoteError) as other:
        await alice.edit_file("app.log", [Replacement(start=9_001, end=9_001, expect="another", replace="x")])
    assert other.value.code == "expect_mismatch"
    assert (other.value.details["start"], other.value.details["end"]) == (9_001, 9_001)
    with pytest.raises(RemoteError) as nowhere:
        await alice.edit_file("app.log", [Replacement(search="no such text", replace="x")])
    assert nowhere.value.code == "search_not_found"
    assert "search_content" in (nowhere.value.hint or "")
    with pytest.raises(RemoteError) as symbol:
        await alice.edit_file("app.log", [Replacement(symbol="main", content="x")])
    assert symbol.value.code == "too_large"
    log.holds()


async def test_a_passage_whose_lines_end_differently_is_changed_by_its_line_numbers(
    log: Log, alice: FileAccess
) -> None:
    data = log.text.encode().replace(line(300).encode() + b"\n", line(300).encode() + b"\r\n")
    log.path.write_bytes(data)
    quoted = "\n".join(line(number) for number in (299, 300, 301))
    with pytest.raises(RemoteError) as refused:
        await alice.edit_file("app.log", [Replacement(search=quoted, replace="x")])
    assert refused.value.code == "search_not_found"
    assert "{start, end, expect, replace}" in (refused.value.hint or "")
    by_lines = Replacement(start=299, end=301, expect=quoted, replace=f"one\ntwo\n{line(301)}")
    made(await alice.edit_file("app.log", [by_lines]))
    old, new = (f"{a}\n{b}\r\n".encode() for a, b in ((line(299), line(300)), ("one", "two")))
    assert log.path.read_bytes() == data.replace(old, new)


async def test_large_utf_16_is_replaced_as_a_whole(log: Log, alice: FileAccess) -> None:
    log.path.write_bytes(log.text.encode("utf-16"))
    with pytest.raises(RemoteError) as refused:
        await alice.edit_file("app.log", [Replacement(search=line(300), replace="x")])
    assert refused.value.code == "too_large"
    assert "write_file" in (refused.value.hint or "")
    newest = (await alice.file_history("app.log")).versions[0].version_id
    made(await alice.write_file("app.log", "short\n", mode="truncate", base=newest))
    assert "short" in (await alice.read_file("app.log")).text


async def test_a_secret_that_was_not_shown_stays(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    log.lines[10_000] = 'token = "ghp_' + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36] + '"'
    log.path.write_text(log.text)
    with pytest.raises(RemoteError) as refused:
        await alice.edit_file("app.log", [Replacement(search="token = ", replace="none = ")])
    assert (refused.value.code, refused.value.details["line"]) == ("redacted_line", 10_001)
    log.holds()


async def test_a_change_waits_for_a_person(large: RunningDaemon, log: Log) -> None:
    async with large.client("carol") as carol, large.client() as person:
        waiting = await carol.edit_file("app.log", [Replacement(search=line(77), replace="carol")])
        assert waiting.status == "waiting"
        assert waiting.approval is not None
        log.holds()
        shown = (await person.approvals_show(waiting.approval)).diff or ""
        before, after = "".join(f" {line(n)}\n" for n in (74, 75, 76)), "".join(f" {line(n)}\n" for n in (78, 79, 80))
        assert f"@@ -74,7 +74,7 @@\n{before}-{line(77)}\n+carol\n{after}" in shown
        await person.approve(waiting.approval, approver=await large.make_approver())
    log.lines[76] = "carol"
    log.holds()
    await whole(large)


async def test_old_versions_are_read(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    first = (await alice.read_lines("app.log", start=1, end=1)).version_id
    versions, texts = list[str](), [list(log.lines)]
    for number in (15_000, 7_000, 1):
        changed = await alice.edit_file(
            "app.log", [Replacement(search=line(number), replace=f"new {number}\nand more")]
        )
        versions.append(made(changed))
        log.lines[number - 1 : number] = [f"new {number}", "and more"]
        texts.append(list(log.lines))
    for at, lines in zip((first, *versions), texts, strict=True):
        for start, end in ((6_999, 7_003), (1, 2), (15_001, 15_004), (len(lines) - 1, len(lines))):
            read = await alice.read_lines("app.log", start=start, end=end, at=at, line_numbers=False)
            assert read.text == "".join(f"{one}\n" for one in lines[start - 1 : end])
            assert at == versions[-1] or read.total_lines == len(lines)
        last = await alice.read_file("app.log", start=-2, at=at, line_numbers=False)
        assert last.text == "".join(f"{one}\n" for one in lines[-2:])
    with pytest.raises(RemoteError) as refused:
        await alice.read_lines("app.log", start=LINES + 9, at=first)
    assert refused.value.code == "invalid_parameter"


async def test_a_redacted_first_version_takes_its_splices_along(
    large: RunningDaemon, log: Log, alice: FileAccess
) -> None:
    changed = made(await alice.edit_file("app.log", [Replacement(search=line(77), replace="alice")]))
    log.lines[76] = "alice"
    async with large.client() as person:
        before = (await person.file_history("app.log")).versions[-1].hash or ""
        await person.journal_redact(blob=before, reason="secret", approver=await large.make_approver())
        with pytest.raises(RemoteError) as refused:
            await person.content_at("app.log", at=changed)
        assert refused.value.code == "version_not_kept"
    await whole(large)
    made(await alice.edit_file("app.log", [Replacement(search=line(78), replace="alice")]))
    log.lines[77] = "alice"
    log.holds()


async def test_collecting_keeps_what_others_are_spliced_of(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    changed = made(await alice.edit_file("app.log", [Replacement(search=line(77), replace="alice")]))
    log.lines[76] = "alice"
    async with large.client() as person:
        approver, head = await large.make_approver(), (await person.status()).head
        await person.journal_archive(head, approver=approver)
        await person.journal_collect(approver=approver, grace_days=0)
    await whole(large)
    data, offset = b"", 0
    async with large.client() as person:
        while True:
            part = await person.content_at("app.log", at=changed, offset=offset)
            data += part.data
            if part.next is None:
                break
            offset = part.next
    assert data == log.text.encode()


async def test_what_another_program_changed_is_undone(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    made(await alice.edit_file("app.log", [Replacement(search=line(77), replace="alice")]))
    log.lines[76] = "alice"
    other = large.base / "other"
    other.write_text(log.text.replace(line(5_000), "another program\nwas here"))
    os.replace(other, log.path)  # at once: nobody meets a half of it
    theirs = (await alice.file_info("app.log")).version_id or ""
    undone = await alice.revert(theirs)
    assert undone.status == "applied", undone.message
    log.holds()
    await whole(large)


async def test_a_log_that_grows_between_changes(large: RunningDaemon, log: Log, alice: FileAccess) -> None:
    """What other programs append is kept as that, so that an undo of what is above it keeps it."""
    first = made(await alice.edit_file("app.log", [Replacement(search=line(77), replace="alice")]))
    for number in range(3):
        log.lines.append(f"{number} by another program")
        with log.path.open("a") as file:
            file.write(f"{log.lines[-1]}\n")
        made(await alice.edit_file("app.log", [Replacement(search=line(100 + number), replace=f"again {number}")]))
        log.lines[99 + number] = f"again {number}"
    log.lines[76] = "alice"
    log.holds()
    assert len([file for file in (large.state_dir / "blobs").rglob("*") if file.is_file()]) == 1
    undone = await alice.revert(first)
    assert undone.status == "applied", undone.message
    log.lines[76] = line(77)
    log.holds()
    await whole(large)


STEPS = (
    "txn_open:change_intended",
    "txn_committed:change_intended",
    "temp_created",
    "temp_half_written",
    "temp_synced",
    "hash_rechecked",
    "swapped",
    "directory_synced",
    "written",
    "txn_open:change_applied",
)


@pytest.mark.parametrize("step", STEPS)
async def test_a_crash_leaves_nothing_half_done(base: Path, step: str) -> None:
    """The daemon is killed while it changes a passage; the next start finds before or after, never between."""
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    ending = RunningDaemon(base, module=("-m", "tests.crash.crashing", "--at", step))
    log = Log(ending)
    before = log.text
    log.lines[9_999:10_000] = ["changed", "and more"]
    assert ending.start()["ok"]
    async with ending.client("alice") as alice:
        with pytest.raises(DaemonRestarted):
            await alice.edit_file("app.log", [Replacement(search=line(10_000), replace="changed\nand more")])
    ending.kill()
    with running(base) as daemon, anyio.fail_after(60):
        assert {path.name for path in daemon.workspace.iterdir()} == {"app.log"}
        assert log.path.read_text() in (before, log.text)
        await whole(daemon)
        async with daemon.client("alice") as alice:
            if log.path.read_text() == before:
                made(await alice.edit_file("app.log", [Replacement(search=line(10_000), replace="changed\nand more")]))
            log.holds()
        await whole(daemon)


async def test_what_is_not_compared_says_what_to_send_instead(log: Log, alice: FileAccess, bob: FileAccess) -> None:
    with log.path.open("a") as file:
        file.write("more\n")
    seen = await alice.read_lines("app.log", start=1, end=3)
    assert seen.version_id is not None
    with log.path.open("a") as file:
        file.write("and more\n")
    await expect("version_not_kept", "read_lines", alice.get_diff("app.log"))
    base = (await alice.read_lines("app.log", start=1, end=3)).version_id
    made(await bob.edit_file("app.log", [Replacement(search=line(2), replace="two")]))
    newest = (await bob.file_history("app.log")).versions[0].version_id
    await expect("version_too_large", "read_file with at", alice.get_diff("app.log"))
    await expect("too_large", "file_history", alice.blame("app.log"))
    await expect("version_too_large", "read_file with at", alice.blame("app.log", at=newest))
    tree = await alice.get_diff(from_=base or "")
    assert [(file.path, file.left_out) for file in tree.files] == [("app.log", "too_large")]
    change = Replacement(search=line(2), replace="zwei")
    await expect("stale_base", "search_content", alice.edit_file("app.log", [change], base=base))
    assert not (await alice.list_conflicts()).conflicts


async def expect(code: str, hint: str, call: Awaitable[object]) -> None:
    """A refusal, and what it says to send."""
    with pytest.raises(RemoteError) as refused:
        await call
    assert refused.value.code == code
    assert hint in (refused.value.hint or "")
