"""Changes by those whose reading is out of date, and the question who holds a stale view."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

NAME = "code.py"
TEXT = "".join(f"line {n}\n" for n in range(1, 41))
CAREFUL = 'name = "careful"\ndefault = "allow"\n[edits]\nstale_reads = "{}"\n'


async def replace(files: FileAccess, old: str, new: str) -> Any:
    return await files.edit_file(NAME, [Replacement(search=f"{old}\n", replace=f"{new}\n")])


async def test_a_change_carries_what_its_author_had_not_seen(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        seen = await alice.read_file(NAME)
        await bob.read_file(NAME)
        theirs = await replace(bob, "line 5", "five")
        answer = await replace(alice, "line 30", "thirty")
        (unseen,) = answer.unseen
        assert (unseen.path, unseen.seen_in, unseen.start, unseen.end) == (NAME, seen.version_id, 5, 5)
        assert (unseen.now_start, unseen.now_end, unseen.by) == (5, 5, ("bob",))
        assert unseen.since == theirs.version_id
        page = await person.journal_query(kind="change_applied", agent="alice")
        assert page.entries[0].event["provenance"]["unseen"][0]["seen"] == [5, 5]
        again = await alice.read_file(NAME)
        assert "five" in again.text
        assert (await replace(alice, "line 31", "more")).unseen == (), "she has looked"


async def test_nothing_is_unseen_where_the_lines_only_moved(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file(NAME, start=20, end=30)
        await bob.read_file(NAME)
        await replace(bob, "line 1", "zero\none")
        answer = await replace(alice, "line 25", "x")
        assert (answer.status, answer.unseen) == ("applied", ())


async def test_policy_may_put_it_before_a_person(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    (daemon.state_dir / "policy.toml").write_text(CAREFUL.format("ask"))
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        approver = await daemon.make_approver()
        await person.policy_reload(approver=approver)
        await alice.read_file(NAME)
        await bob.read_file(NAME)
        assert (await replace(bob, "line 5", "five")).status == "applied", "nobody was before him"
        waiting = await replace(alice, "line 30", "thirty")
        assert waiting.status == "waiting"
        assert [u.start for u in waiting.unseen] == [5]
        (shown,) = (await person.approvals_list()).approvals
        assert "edits.stale_reads" in shown.rule
        assert "bob changed lines 5-5" in shown.rule
        done = await person.approve(waiting.approval or "", approver=approver, unseen=True)
        assert done.status == "applied"
        assert [u.start for u in done.unseen] == [5], "what was asked is what was applied"
        await alice.read_file(NAME)
        assert (await replace(alice, "line 31", "more")).status == "applied"


LONG = "x" * 300


@pytest.mark.parametrize(
    ("new", "then", "status", "unseen"),
    [
        pytest.param("five", None, "applied", [], id="told in full"),
        pytest.param("line 5\nand more", None, "applied", [], id="told in full of lines that came between"),
        pytest.param(LONG, None, "waiting", [5], id="told with a diff that is cut"),
        pytest.param("five", "FIVE", "waiting", [5], id="changed again since"),
    ],
)
async def test_what_a_notice_showed_in_full_is_seen(
    daemon: RunningDaemon, new: str, then: str | None, status: str, unseen: list[int]
) -> None:
    """And stays so when the daemon starts again."""
    (daemon.workspace / NAME).write_text(TEXT)
    (daemon.state_dir / "policy.toml").write_text(CAREFUL.format("ask"))
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await person.policy_reload(approver=await daemon.make_approver())
        session = alice.session
        await alice.read_file(NAME)
        await bob.read_file(NAME)
        await replace(bob, "line 5", new)
        await alice.list_files()
        (notice,) = alice.take_notices()
        assert notice.diff_truncated == (new == LONG)
        if then is not None:
            assert (await replace(bob, new, then)).status == "applied"
        answer = await replace(alice, "line 30", "thirty")
        assert (answer.status, [u.start for u in answer.unseen]) == (status, unseen)
        assert [n.path for n in (await alice.session_status()).stale] == [NAME], "a notice is no read"
        assert "alice" in {reader.agent for reader in (await person.stale_readers(NAME)).readers}
    daemon.kill()
    daemon.start()
    async with daemon.client("alice", session=session) as alice:
        answer = await replace(alice, "line 35", "more")
        cut = new == LONG
        assert (answer.status, bool(answer.unseen)) == ("waiting" if cut else "applied", cut), "told with the answers"


async def test_a_notice_is_no_base_for_writing_the_whole_file(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text("only\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file(NAME)
        await bob.read_file(NAME)
        await replace(bob, "only", "other")
        await alice.list_files()
        (notice,) = alice.take_notices()
        assert notice.diff == "@@ -1,1 +1,1 @@\n-only\n+other\n"
        answer = await alice.write_file(NAME, "mine\n", mode="truncate")
        assert answer.status == "conflict", "made against what she read, not against what she was told"


async def test_a_rollback_is_not_asked_about(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    (daemon.state_dir / "policy.toml").write_text(CAREFUL.format("ask"))
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await person.policy_reload(approver=await daemon.make_approver())
        await alice.read_file(NAME)
        mine = await replace(alice, "line 30", "thirty")
        await bob.read_file(NAME)
        await replace(bob, "line 5", "five")
        answer = await alice.revert(mine.change or "")
        assert (answer.status, answer.unseen) == ("applied", ())


async def test_who_holds_a_stale_view(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with (
        daemon.client("alice") as alice,
        daemon.client("bob") as bob,
        daemon.client("carol") as carol,
        daemon.client() as person,
    ):
        seen = await alice.read_file(NAME, start=1, end=10)
        await carol.read_file(NAME, start=20, end=30)
        await bob.read_file(NAME)
        await replace(bob, "line 5", "five")
        answer = await person.stale_readers(NAME)
        (reader,) = answer.readers
        assert (reader.agent, reader.session, reader.open) == ("alice", alice.session, True)
        assert (reader.version_id, reader.by) == (seen.version_id, ("bob",))
        assert [(lines.start, lines.end) for lines in reader.lines] == [(5, 5)]
        assert answer.total == 1
        (daemon.workspace / NAME).write_text(TEXT.replace("line 25\n", "edited\n"))
        after = await person.stale_readers(NAME, limit=1)
        assert (len(after.readers), after.total) == (1, 2), "the file is looked at first"
        both = {reader.agent for reader in (await person.stale_readers(NAME)).readers}
        assert both == {"bob", "carol"}, "line 5 is as alice saw it again"
        code, reported = command(daemon, "readers", NAME)
        assert (code, reported["total"]) == (0, 2)
        await bob.read_file(NAME)
        assert (await person.stale_readers(NAME)).total == 1


async def test_a_feed_of_what_makes_a_session_stale(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file(NAME, start=1, end=10)
        async with alice.subscribe(stale_for=alice.session) as events:
            await bob.read_file(NAME)
            await replace(bob, "line 30", "thirty")
            await replace(alice, "line 9", "nine")
            mine = await replace(bob, "line 5", "five")
            with anyio.fail_after(60):
                event = await anext(aiter(events))
        assert (event.kind, event.agent, event.seq) == ("change_applied", "bob", mine.version_id)
        with pytest.raises(RemoteError) as refused:
            async with bob.subscribe(stale_for=alice.session):
                pass
        assert refused.value.code == "not_permitted"


async def test_who_may_not_list_a_file_does_not_learn_who_reads_it(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    (daemon.state_dir / "policy.toml").write_text(
        'name = "closed"\ndefault = "allow"\n[[rule]]\nname = "closed"\nagents = ["alice"]\n'
        f'actions = ["list", "read"]\npaths = ["{NAME}"]\nverdict = "deny"\n'
    )
    async with daemon.client("alice") as alice, daemon.client() as person:
        await person.policy_reload(approver=await daemon.make_approver())
        with pytest.raises(RemoteError) as refused:
            await alice.stale_readers(NAME)
        assert refused.value.code == "denied"


async def test_the_terminal_reports_on_stderr(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file(NAME, start=1, end=10)
        await bob.read_file(NAME)
        change = await replace(bob, "line 5", "five")
        done = await anyio.run_process(
            [sys.executable, "-m", "orchestrator", "files", "--json", "--agent", "alice"],
            cwd=daemon.workspace,
            env={**daemon.env, "ORCHESTRATOR_SESSION": alice.session},
        )
        reported = done.stderr.decode()
        assert f"notice: {NAME}: lines that you read were changed by bob since {change.version_id}" in reported
        assert "  -line 5\n  +five" in reported
        assert b"notice" not in done.stdout


async def test_what_a_refusal_shows_is_seen(daemon: RunningDaemon) -> None:
    (daemon.workspace / NAME).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        found = await bob.read_file(NAME)
        with pytest.raises(RemoteError, match="search text"):
            await replace(alice, "line 30 or so", "thirty")
        (entry,) = (await person.journal_query(kind="content_shown", agent="alice")).entries
        seen = entry.event["seen"]
        assert (seen["path"], seen["total_lines"], f"@{seen['version']}") == (NAME, 40, found.version_id)
        assert any(start <= 30 <= end for start, end in seen["ranges"])
        await replace(bob, "line 30", "thirty")
        assert "alice" in {reader.agent for reader in (await person.stale_readers(NAME)).readers}
