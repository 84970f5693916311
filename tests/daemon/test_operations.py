"""Every operation through the real daemon: what it answers, and what it does not do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.external_changes import save

pytestmark = pytest.mark.anyio

ALLOW_ALL = """
name = "open"
default = "allow"
"""


@pytest.fixture
def work(base: Path) -> Path:
    """The folder that will be the workspace, before a daemon knows it."""
    folder = base / "work"
    folder.mkdir(mode=0o700)
    return folder


def code(refused: pytest.ExceptionInfo[RemoteError]) -> str:
    return refused.value.code


async def applied(answer: ChangeAnswer) -> ChangeAnswer:
    assert answer.status == "applied", answer
    return answer


# --- listing and searching -------------------------------------------------------------------


async def test_listing_is_sorted_paged_and_leaves_ignored_out(daemon: RunningDaemon) -> None:
    work = daemon.workspace
    (work / ".gitignore").write_text("*.log\nout/\n")
    for name in ("b.py", "a.py", "c.log", ".hidden"):
        (work / name).write_text("x\n")
    (work / "out").mkdir()
    (work / "out" / "made.py").write_text("x\n")
    (work / "pkg").mkdir()
    (work / "pkg" / "d.py").write_text("x\n")
    (work / "link").symlink_to("a.py")
    async with daemon.client("alice") as alice:
        listing = await alice.list_files()
        assert [entry.path for entry in listing.entries] == ["pkg", "a.py", "b.py", "link"]
        kinds = {entry.path: entry.type for entry in listing.entries}
        assert kinds["pkg"] == "DirectoryEntry"
        assert kinds["link"] == "SymbolicLinkEntry"

        first = await alice.list_files(recursive=True, include_hidden=True, limit=3)
        assert first.truncated
        assert first.total == 7
        second = await alice.list_files(recursive=True, include_hidden=True, limit=5, cursor=first.cursor)
        paths = [entry.path for entry in (*first.entries, *second.entries)]
        assert paths == [".gitignore", ".hidden", "a.py", "b.py", "link", "pkg", "pkg/d.py"]

        found = await alice.find_files("*.py")
        assert [entry.path for entry in found.entries] == ["a.py", "b.py", "pkg/d.py"]
        below = await alice.find_files("*.py", path="pkg")
        assert [entry.path for entry in below.entries] == ["pkg/d.py"]
        flat = (await alice.list_files(limit=1)).cursor
        python = (await alice.find_files("*.py", limit=1)).cursor
        assert [entry.path for entry in (await alice.find_files("*.py", cursor=python)).entries] == ["b.py", "pkg/d.py"]
        for cursor, path in (("xx", "."), ("a.py", "."), (flat, "."), (first.cursor, "."), (python, "pkg")):
            with pytest.raises(RemoteError, match=r"is not one of ours|belongs to another search") as wrong:
                await alice.find_files("*.py", path=path, cursor=cursor)
            assert code(wrong) == "invalid_parameter"
        for wanted in ("*.p*", "a*"):
            with pytest.raises(RemoteError, match="belongs to another search"):
                await alice.find_files(wanted, cursor=python)
        with pytest.raises(RemoteError, match="belongs to another search"):
            await alice.list_files(cursor=first.cursor)

        with pytest.raises(RemoteError) as refused:
            await alice.list_files("a.py")
        assert code(refused) == "not_a_directory"
        (work / ".gitignore").write_text("build/\n")
        (work / "build").mkdir()
        (work / "build" / "out.txt").write_text("x\n")
        ignored = await alice.find_files("build/*")
        assert (ignored.entries, ignored.hint) == (
            (),
            'ignored files are left out: send path="build", which is ignored, and globs as seen from there',
        )
        assert [entry.path for entry in (await alice.find_files("*", path="build")).entries] == ["build/out.txt"]
        assert (await alice.find_files("pkg/*.rs")).hint is None

        with pytest.raises(RemoteError, match="symbolic link, and links are not followed") as refused:
            await alice.list_files("link")
        assert refused.value.hint == 'It points to "a.py"; where that is in the workspace, name it itself.'


async def test_search_pages_through_every_hit_once(daemon: RunningDaemon) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (daemon.workspace / name).write_text("".join(f"needle {n}\nhay\n" for n in range(7)))
    async with daemon.client("alice") as alice:
        seen: list[tuple[str, int]] = []
        cursor = None
        for _ in range(20):
            page = await alice.search_content("needle", max_results=4, context_lines=0, cursor=cursor)
            assert page.total == 21
            seen += [(hit.path, hit.line) for hit in page.hits]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == [(name, line) for name in ("a.txt", "b.txt", "c.txt") for line in range(1, 15, 2)]

        counted = await alice.search_content("needle", count_only=True)
        assert (counted.total, counted.hits) == (21, ())
        one = await alice.search_content("NEEDLE 3", path="b.txt", case_sensitive=False)
        assert [(hit.path, hit.line, hit.before) for hit in one.hits] == [("b.txt", 7, ("needle 2", "hay"))]
        words = await alice.search_content("need", word=True)
        assert words.total == 0
        inverted = await alice.search_content("needle", path="a.txt", invert=True, globs=())
        assert inverted.total == 7
        with pytest.raises(RemoteError) as refused:
            await alice.search_content("a\nb")
        assert code(refused) == "invalid_parameter"


# --- reading ---------------------------------------------------------------------------------


async def test_reading_in_pieces_says_how_to_go_on(daemon: RunningDaemon) -> None:
    (daemon.workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 2001)))
    async with daemon.client("alice") as alice:
        first = await alice.read_file("long.txt", max_tokens=200)
        assert first.truncated
        assert first.next == f'read_file(path="long.txt", start={first.end + 1})'
        rest = await alice.read_file("long.txt", start=first.end + 1, max_tokens=200_000)
        assert rest.end == rest.total_lines == 2000
        assert rest.next is None
        exact = await alice.read_lines("long.txt", start=1000, end=1002, line_numbers=False)
        assert exact.text == "line 1000\nline 1001\nline 1002\n"
        with pytest.raises(RemoteError) as refused:
            await alice.read_lines("long.txt", start=3000)
        assert code(refused) == "invalid_parameter"


async def test_a_file_read_in_pieces_may_be_replaced_whole(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    async with daemon.client("alice") as alice:
        await alice.read_lines("a.txt", start=1, end=2)
        with pytest.raises(RemoteError) as refused:
            await alice.write_file("a.txt", "new\n", mode="truncate")
        assert code(refused) == "base_required"
        await alice.read_lines("a.txt", start=3)
        await applied(await alice.write_file("a.txt", "new\n", mode="truncate"))


async def test_earlier_states_can_be_read(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        made = await applied(await alice.write_file("a.txt", "one\n", mode="create"))
        await applied(await alice.edit_file("a.txt", [Replacement(search="one", replace="two")]))
        then = await alice.read_file("a.txt", at=made.version_id, line_numbers=False)
        assert then.text == "one\n"
        between = await alice.read_file("a.txt", at=made.change, line_numbers=False)
        assert between.version_id == made.version_id
        with pytest.raises(RemoteError) as refused:
            await alice.read_file("a.txt", at="@1")
        assert code(refused) == "not_found"


# --- changing --------------------------------------------------------------------------------

CONTENTS = {
    "utf-8, LF": "ä\nb\nc\n".encode(),
    "UTF-8 with a mark, CRLF": b"\xef\xbb\xbf" + "ä\r\nb\r\nc\r\n".encode(),
    "Latin-1, CR": "ä\rb\rc\r".encode("latin-1"),
    "mixed ends": "ä\r\nb\nc\r".encode(),
    "no final newline": "ä\nb\nc".encode(),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600])
async def test_an_edit_changes_nothing_but_its_passage(daemon: RunningDaemon, content: bytes, mode: int) -> None:
    file = daemon.workspace / "a.txt"
    file.write_bytes(content)
    file.chmod(mode)
    async with daemon.client("alice") as alice:
        change = await applied(await alice.edit_file("a.txt", [Replacement(search="b", replace="B")]))
        assert file.read_bytes() == content.replace(b"b", b"B")
        assert file.stat().st_mode & 0o7777 == mode
        await applied(await alice.revert(change.change or ""))
        assert file.read_bytes() == content
        assert file.stat().st_mode & 0o7777 == mode


async def test_a_batch_applies_whole_or_not_at_all(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.txt"
    file.write_text("one\ntwo\none\n")
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file(
                "a.txt", [Replacement(search="two", replace="2"), Replacement(search="three", replace="3")]
            )
        assert code(refused) == "search_not_found"
        assert file.read_text() == "one\ntwo\none\n"
        both = [Replacement(search="one", replace="1", expected_count=2), Replacement(search="two", replace="2")]
        shown = await alice.edit_file("a.txt", both, preview=True)
        assert (shown.status, shown.would_be) == ("preview", "applied")
        assert file.read_text() == "one\ntwo\none\n"
        await applied(await alice.edit_file("a.txt", both))
        assert file.read_text() == "1\n2\n1\n"


async def test_the_same_request_is_carried_out_once(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        first = await alice.write_file("a.txt", "x\n", mode="append", request_id="r-1")
        again = await alice.write_file("a.txt", "x\n", mode="append", request_id="r-1")
        assert (again.status, again.change) == ("applied", first.change)
        assert (daemon.workspace / "a.txt").read_text() == "x\n"
        with pytest.raises(RemoteError) as refused:
            await alice.write_file("a.txt", "y\n", mode="append", request_id="r-1")
        assert code(refused) == "request_id_reused"
        with pytest.raises(RemoteError) as first_refusal:
            await alice.edit_file("a.txt", [Replacement(search="z", replace="y")], request_id="r-2")
        (daemon.workspace / "a.txt").write_text("z\n")
        with pytest.raises(RemoteError) as same_refusal:
            await alice.edit_file("a.txt", [Replacement(search="z", replace="y")], request_id="r-2")
        assert code(first_refusal) == code(same_refusal) == "search_not_found"
    async with daemon.client("bob") as bob:
        other = await bob.write_file("b.txt", "x\n", mode="create", request_id="r-1")
        assert other.status == "applied"


async def test_outside_changes_are_noticed_and_can_be_undone(base: Path, work: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(ALLOW_ALL)
    (work / "a.txt").write_text("one\n")
    daemon.start()
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        (work / "a.txt").write_text("from a shell\n")
        stale = await alice.edit_file("a.txt", [Replacement(search="one", replace="1")])
        assert stale.status == "conflict"
        history = await alice.file_history("a.txt")
        assert [version.kind for version in history.versions] == ["external", "found"]
        back = await applied(await alice.revert(history.versions[0].version_id))
        assert (work / "a.txt").read_text() == "one\n"
        (work / "a.txt").unlink()
        gone = await alice.file_info("a.txt")
        assert not gone.exists
        removed = (await alice.file_history("a.txt")).versions[0]
        assert removed.removed
        await applied(await alice.revert(removed.version_id))
        assert (work / "a.txt").read_text() == "one\n"
        assert back.change is not None
    assert daemon.stop() == 0


async def test_changes_while_the_daemon_was_away_are_found_at_the_start(base: Path, work: Path) -> None:
    daemon = RunningDaemon(base)
    (work / "a.txt").write_text("one\n")
    (work / "gone.txt").write_text("one\n")
    daemon.start()
    async with daemon.client() as person:
        assert (await person.workspace_check()).ok
    assert daemon.stop() == 0
    (work / "a.txt").write_text("two\n")
    (work / "gone.txt").unlink()
    (work / "new.txt").write_text("new\n")
    daemon.start()
    async with daemon.client() as person:
        entries = (await person.journal_query(limit=100)).entries
        events = [entry for entry in entries if entry.kind.startswith("external_file_")]
        assert {(entry.kind, entry.event["path"]) for entry in events} == {
            ("external_file_changed", "a.txt"),
            ("external_file_removed", "gone.txt"),
            ("external_file_created", "new.txt"),
        }
        assert (await person.workspace_check()).ok
    assert daemon.stop() == 0


async def test_move_and_delete_wait_for_a_person_and_can_be_undone(daemon: RunningDaemon) -> None:
    code_ = await daemon.make_approver()
    file = daemon.workspace / "a.txt"
    file.write_text("one\n")
    file.chmod(0o755)
    async with daemon.client("alice") as alice, daemon.client() as person:
        moving = await alice.move_file("a.txt", "deep/er/b.txt")
        assert moving.status == "waiting"
        moved = await applied(await person.approve(moving.approval or "", approver=code_, unseen=True))
        assert (daemon.workspace / "deep/er/b.txt").read_text() == "one\n"
        assert not file.exists()
        await applied(await alice.edit_file("deep/er/b.txt", [Replacement(search="one", replace="two")]))
        await applied(await alice.revert(moved.change or ""))
        assert file.read_text() == "two\n"

        deleting = await alice.delete_file("a.txt")
        deleted = await applied(await person.approve(deleting.approval or "", approver=code_, unseen=True))
        assert not file.exists()
        await applied(await alice.revert(deleted.change or ""))
        assert file.read_text() == "two\n"
        assert file.stat().st_mode & 0o7777 == 0o755


async def test_a_grant_whose_base_moved_asks_again_or_becomes_a_conflict(daemon: RunningDaemon) -> None:
    code_ = await daemon.make_approver()
    lines = "".join(f"step {n}:\n" for n in range(10))
    (daemon.workspace / "Makefile").write_text(lines)
    async with daemon.client("alice") as alice, daemon.client() as person:
        waiting = await alice.edit_file("Makefile", [Replacement(search="step 3", replace="STEP 3")])
        (daemon.workspace / "Makefile").write_text("top:\n" + lines)
        renewed = await person.approve(waiting.approval or "", approver=code_, unseen=True)
        assert renewed.status == "waiting"
        assert renewed.approval != waiting.approval
        assert (await alice.await_change(waiting.approval or "", timeout_s=0)).approval == renewed.approval
        done = await applied(await person.approve(renewed.approval or "", approver=code_, unseen=True))
        assert (daemon.workspace / "Makefile").read_text() == "top:\n" + lines.replace("step 3", "STEP 3")
        assert done.approval == renewed.approval

        second = await alice.edit_file("Makefile", [Replacement(search="step 5", replace="STEP 5")])
        (daemon.workspace / "Makefile").write_text("all else\n")
        conflict = await person.approve(second.approval or "", approver=code_, unseen=True)
        assert conflict.status == "conflict"
        assert (daemon.workspace / "Makefile").read_text() == "all else\n"


async def test_a_person_denies(daemon: RunningDaemon) -> None:
    code_ = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client() as person:
        waiting = await alice.write_file("Makefile", "all:\n", mode="create")
        await person.deny(waiting.approval or "", approver=code_, reason="not now")
        final = await alice.await_change(waiting.approval or "")
        assert final.status == "denied"
        assert "not now" in final.message
        assert not (daemon.workspace / "Makefile").exists()


# --- conflicts -------------------------------------------------------------------------------


async def conflicting(alice: FileAccess, bob: FileAccess) -> ChangeAnswer:
    await applied(await alice.write_file("a.txt", "one\ntwo\nthree\nfour\n", mode="create"))
    await bob.read_file("a.txt")
    await applied(await alice.edit_file("a.txt", [Replacement(search="two", replace="two, alice")]))
    await applied(await alice.edit_file("a.txt", [Replacement(search="four", replace="four, alice")]))
    conflict = await bob.edit_file("a.txt", [Replacement(search="two", replace="two, bob")])
    assert conflict.status == "conflict"
    return conflict


@pytest.mark.parametrize(
    ("choice", "content", "expected", "status"),
    [
        pytest.param("current", None, "one\ntwo, alice\nthree\nfour, alice\n", "dropped", id="current"),
        pytest.param("proposed", None, "one\ntwo, bob\nthree\nfour, alice\n", "applied", id="proposed, its clash only"),
        pytest.param("content", "one\nboth\n", "one\nboth\n", "applied", id="content"),
    ],
)
async def test_a_person_resolves_a_conflict(
    daemon: RunningDaemon, choice: str, content: str | None, expected: str, status: str
) -> None:
    code_ = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        conflict = await conflicting(alice, bob)
        with pytest.raises(RemoteError) as refused:
            await bob.resolve_conflict(conflict.conflict or "", "current")
        assert code(refused) == "not_permitted"
        listed = (await person.list_conflicts()).conflicts
        assert [item.conflict for item in listed] == [conflict.conflict]
        on = listed[0].current_version if content is not None else None
        resolved = await person.resolve_conflict(
            conflict.conflict or "",
            choice,  # type: ignore[arg-type]
            content=content,
            on=on,
            approver=code_,
        )
        assert resolved.status == status
        assert (daemon.workspace / "a.txt").read_text() == expected
        assert (await bob.await_change(conflict.conflict or "")).status == status
        assert (await person.list_conflicts()).conflicts == ()


async def test_a_new_try_supersedes_the_conflict(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        conflict = await conflicting(alice, bob)
        again = await bob.edit_file("a.txt", [Replacement(search="two, alice", replace="two, both")])
        assert again.status == "applied"
        assert (await bob.list_conflicts()).conflicts == ()
        assert (await bob.await_change(conflict.conflict or "")).status == "dropped"


# --- sessions --------------------------------------------------------------------------------


async def test_the_stack_of_a_session(daemon: RunningDaemon) -> None:
    (daemon.workspace / "README.md").write_text("read me\n")
    (daemon.workspace / "a.txt").write_text("one\n")
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        task = await alice.begin_task("tidy up")
        await bob.file_info("README.md")
        assert "README.md" in (await alice.session_status()).start_here
        await alice.read_file("a.txt")
        await bob.edit_file("a.txt", [Replacement(search="one", replace="two")])
        change = await alice.write_file("b.txt", "x\n", mode="create", reason="needed")
        status = await alice.session_status()
        assert [(read.path, read.stale) for read in status.recent_reads] == [("b.txt", False), ("a.txt", True)]
        assert [made.change for made in status.uncommitted_changes] == [change.change]
        assert [item.title for item in status.tasks] == ["tidy up"]
        version = (await alice.file_history("b.txt")).versions[0]
        assert (version.task, version.reason, version.agent) == (task.task, "needed", "alice")
        assert (await alice.end_task(task.task, outcome="done")).ended
        assert (await alice.session_status()).tasks == ()
        with pytest.raises(RemoteError) as refused:
            await alice.end_task(task.task)
        assert code(refused) == "version_unknown"


async def test_diffs_between_versions(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        first = await alice.write_file("a.txt", "one\n", mode="create")
        second = await alice.edit_file("a.txt", [Replacement(search="one", replace="two")])
        save(daemon.workspace / "a.txt", "three\n", by_way_of=daemon.base / "saved")
        last = await alice.get_diff("a.txt")
        assert last.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n"
        named = await alice.get_diff("a.txt", from_=first.version_id or "", to=second.version_id or "")
        assert (named.added, named.removed) == (1, 1)
        with pytest.raises(RemoteError) as refused:
            await alice.get_diff("a.txt", from_="@99999")
        assert code(refused) == "version_unknown"


async def test_a_change_of_no_form_names_what_its_form_lacks(daemon: RunningDaemon) -> None:
    lacking = {
        "content": Replacement(symbol="f", replace="x"),
        "replace": Replacement(search="one"),
        "expect": Replacement(start=1, end=2, replace="x"),
        "search": Replacement(replace="x"),
    }
    async with daemon.client("alice") as alice:
        await alice.write_file("a.txt", "one\n", mode="create")
        for name, change in lacking.items():
            with pytest.raises(RemoteError) as refused:
                await alice.edit_file("a.txt", [change])
            assert refused.value.message == f"{name}: is required (change 1)"
            assert "{symbol, content}" in (refused.value.hint or "")


async def test_a_directory_is_made_and_not_twice(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        await applied(await alice.create_directory("x/y"))
        assert (daemon.workspace / "x/y").is_dir()
        with pytest.raises(RemoteError) as refused:
            await alice.create_directory("x/y")
        assert code(refused) == "already_exists"
        with pytest.raises(RemoteError) as directory:
            await alice.delete_file("x")
        assert code(directory) == "nothing_to_change"


async def test_an_empty_directory_is_removed_and_comes_back(base: Path, work: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text('name = "open"\ndefault = "allow"\n')
    daemon.start()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        made = await applied(await alice.create_directory("d"))
        preview = await bob.delete_file("d", preview=True)
        assert preview.status == "preview"
        assert (daemon.workspace / "d").is_dir()
        removed = await applied(await bob.delete_file("d"))
        assert not (daemon.workspace / "d").exists()
        with pytest.raises(RemoteError) as twice:
            await bob.delete_file("d")
        assert code(twice) == "not_found"
        await applied(await bob.revert(removed.version_id or ""))
        assert (daemon.workspace / "d").is_dir()
        await alice.write_file("d/f.txt", "x", mode="create")
        with pytest.raises(RemoteError) as filled:
            await alice.revert(made.version_id or "")
        assert code(filled) == "already_exists"
        await alice.delete_file("d/f.txt")
        await applied(await alice.revert(made.version_id or ""))
        assert not (daemon.workspace / "d").exists()
    async with daemon.client() as person:
        for report in (await person.workspace_check(), await person.journal_verify(), await person.journal_rebuild()):
            assert report.ok
    assert daemon.stop() == 0


async def test_a_directory_with_anything_in_it_is_not_removed_alone(daemon: RunningDaemon) -> None:
    (daemon.workspace / ".gitignore").write_text("left/out\n")
    (daemon.workspace / "left").mkdir()
    (daemon.workspace / "left/out").write_text("x")
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.delete_file("left")
    assert code(refused) == "nothing_to_change"
    assert (daemon.workspace / "left/out").read_text() == "x"


async def test_read_only_policy(base: Path, work: Path) -> None:
    daemon = RunningDaemon(base)
    source = Path(__file__).parents[2] / "policies" / "read_only.toml"
    (daemon.state_dir / "policy.toml").write_bytes(source.read_bytes())
    (work / "a.txt").write_text("one\n")
    daemon.start()
    async with daemon.client("alice") as alice:
        assert (await alice.read_file("a.txt", line_numbers=False)).text == "one\n"
        for call in (
            alice.edit_file("a.txt", [Replacement(search="one", replace="two")]),
            alice.write_file("b.txt", "x", mode="create"),
            alice.delete_file("a.txt"),
            alice.create_directory("d"),
        ):
            with pytest.raises(RemoteError) as refused:
                await call
            assert code(refused) == "denied"
    assert os.listdir(work) == ["a.txt"]
    assert daemon.stop() == 0
