"""The workspace at any point: reads, diffs of the tree, replay; through the real daemon and the command line."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
from pathlib import Path

import click
import pytest

from orchestrator.api import history as t
from orchestrator.api import results as r
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.clients.render import rendered
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli_bytes
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

OPEN = """
name = "open"
default = "allow"

[[rule]]
name = "secret"
agents = ["*"]
actions = ["read", "search"]
paths = ["*.key"]
verdict = "deny"
reason = "a secret"

[[rule]]
name = "hidden"
agents = ["*"]
actions = ["read", "search", "list"]
paths = ["hidden"]
verdict = "deny"
reason = "not even its name"
"""


@pytest.fixture
def free(base: Path) -> RunningDaemon:
    """A daemon, not started yet, whose policy lets all through but `*.key`, and names but `hidden`."""
    stopped = RunningDaemon(base)
    (stopped.state_dir / "policy.toml").write_text(OPEN)
    return stopped


def git_apply(patch: str, folder: Path) -> None:
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, cwd=folder, input=patch.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def refusal(done: subprocess.CompletedProcess[bytes]) -> str:
    """The code of what a command with --json was refused."""
    code: str = json.loads(done.stdout)["code"]
    return code


def files_in(root: Path) -> dict[str, tuple[bytes, int]]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o7777) for path in found}


async def head(files: FileAccess) -> int:
    return int((await files.status()).head[1:])


# --- reading the past ------------------------------------------------------------------------


async def test_reads_of_the_past(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            before = await head(person)
            made = await alice.write_file("a.txt", "one\n", mode="create")
            edited = await alice.edit_file("a.txt", [Replacement(search="one", replace="two")])
            moved = await alice.move_file("a.txt", "b.txt")
            deleted = await alice.delete_file("b.txt")

            async def text(path: str, at: str | int | None) -> str:
                return (await alice.read_file(path, at=at, line_numbers=False)).text

            assert edited.change != edited.version_id
            assert await text("a.txt", made.version_id) == "one\n"
            assert await text("a.txt", edited.change) == "two\n", "between intent and outcome: after it"
            assert await text("a.txt", edited.version_id) == "two\n"
            assert await text("b.txt", moved.version_id) == "two\n"
            lines = await alice.read_lines("b.txt", at=moved.change, line_numbers=False)
            assert lines.text == "two\n"

            for path, at, said, hint in (
                ("b.txt", deleted.version_id, f"{deleted.version_id} removed it", "file_history"),
                ("b.txt", deleted.change, "removed it", "file_history"),
                ("a.txt", moved.change, "removed it", "file_history"),
                ("b.txt", made.version_id, "not there yet", "file_history"),
                ("a.txt", before, "not there yet", "file_history"),
                ("no.txt", before, "not there yet", "file_history"),
            ):
                with pytest.raises(RemoteError) as refused:
                    await alice.read_file(path, at=at)
                assert refused.value.code == "not_found"
                assert said in refused.value.message
                assert hint in refused.value.hint
            end = await head(person)
            for bad, code in ((0, "version_unknown"), (end + 1000, "version_unknown"), ("abc", "invalid_parameter")):
                with pytest.raises(RemoteError) as wrong:
                    await alice.read_lines("a.txt", at=bad)
                assert wrong.value.code == code
                if bad == end + 1000:
                    assert wrong.value.details["head"] in wrong.value.message

        done = cli_bytes(free, "open", "a.txt", "--at", made.version_id or "")
        assert (done.returncode, done.stdout) == (0, b"one\n")
        for bad, code in (("@0", "version_unknown"), ("@99999", "version_unknown"), ("abc", "invalid_parameter")):
            done = cli_bytes(free, "open", "a.txt", "--at", bad, "--json")
            assert (done.returncode, refusal(done)) == (1, code)


# --- the diff of the tree --------------------------------------------------------------------


async def test_a_tree_diff_is_what_git_applies(free: RunningDaemon, tmp_path: Path) -> None:
    work = free.workspace
    (work / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (work / "end").write_bytes(b"no newline")
    (work / "a b.txt").write_text("blank\n")
    (work / "ü.txt").write_text("gone\n")
    (work / "run.sh").write_text("echo\n")
    (work / "old.py").write_text("".join(f"line {n}\n" for n in range(20)))
    (work / "same").write_text("same\n")
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            start = await head(person)
            old = files_in(work)
            await alice.edit_file("crlf.txt", [Replacement(search="one", replace="eins")])
            await alice.write_file("end", "\nmore", mode="append")
            await alice.edit_file("a b.txt", [Replacement(search="blank", replace="Blank")])
            await alice.delete_file("ü.txt")
            await alice.write_file("new/empty", "", mode="create")
            await alice.write_file("new/né w", "x\n", mode="create")
            await alice.move_file("old.py", "new/mid.py")
            await alice.edit_file("new/mid.py", [Replacement(search="line 5\n", replace="LINE 5\n")])
            moved = await alice.move_file("new/mid.py", "new/name.py")
            (work / "run.sh").chmod(0o755)

            working = await person.get_diff(from_=start, to="working")
            by_path = {file.path: file for file in working.files}
            assert {path: file.status for path, file in by_path.items()} == {
                "a b.txt": "modified",
                "crlf.txt": "modified",
                "end": "modified",
                "new/empty": "added",
                "new/name.py": "renamed",
                "new/né w": "added",
                "run.sh": "mode",
                "ü.txt": "deleted",
            }
            assert by_path["new/name.py"].moved_from == "old.py"
            assert (by_path["new/name.py"].added, by_path["new/name.py"].removed) == (1, 1)
            assert by_path["run.sh"].mode_after == "0755"
            assert (working.total_files, working.cursor, working.path) == (8, None, ".")
            assert working.added == sum(file.added or 0 for file in working.files)
            assert working.diff.count("\ndiff --git ") == 7

            back = await person.get_diff(from_=working.to_version, to=start)
            assert {file.path: file.moved_from for file in back.files if file.moved_from} == {"old.py": "new/name.py"}
            between = await person.get_diff(from_=moved.change or "", to=moved.version_id or "")
            assert (between.files, between.diff, between.total_files) == ((), "", 0)

        shown = cli_bytes(free, "diff", "--from", str(start), "--to", working.to_version)
        assert (shown.returncode, shown.stdout.decode()) == (0, working.diff)
        assert b"run.sh: mode 0644 became 0755" in shown.stderr
        assert json.loads(cli_bytes(free, "diff", "--from", f"@{start}", "--json").stdout)["total_files"] == 8

        copy = tmp_path / "copy"
        done = cli_bytes(free, "replay", "--to", f"@{start}", "--into", str(copy))
        assert (done.returncode, files_in(copy)) == (0, old), done
        for patch, result in ((working.diff, files_in(work)), (back.diff, old)):
            git_apply(patch, copy)
            assert files_in(copy) == result


async def test_a_tree_diff_keeps_to_policy(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            start = await head(person)
            for name in ("a.txt", "b.key", "hidden"):
                (free.workspace / name).write_text("the secret\n")
            diff = await alice.get_diff(from_=start, to="working")
            assert [(file.path, file.left_out, file.added) for file in diff.files] == [
                ("a.txt", None, 1),
                ("b.key", "policy", None),
            ]
            assert diff.diff.count("the secret") == 1
            assert "b.key" not in diff.diff
            assert (diff.unlisted, diff.total_files, diff.added) == (1, 3, 1)
            # a rename out of what may not be read shows the new file, not where it came from
            (free.workspace / "b.key").rename(free.workspace / "c.txt")
            later = await alice.get_diff(from_=diff.to_version, to="working")
            assert [(file.path, file.status, file.left_out) for file in later.files] == [
                ("b.key", "deleted", "policy"),
                ("c.txt", "added", None),
            ]


async def test_a_tree_diff_reads_a_large_file_that_another_program_changed(daemon: RunningDaemon) -> None:
    """Its content is not kept when it is found: it is over the policy's `keep_max_bytes`."""
    text = "".join(f"line {number} {'x' * 50}\n" for number in range(20_000))
    async with daemon.client("alice") as alice:
        start = (await alice.write_file("a.txt", text, mode="create")).version_id
        (daemon.workspace / "a.txt").write_text(text.replace("line 7 ", "LINE 7 "))
        (file,) = (await alice.get_diff(from_=start or "", to="working")).files
        assert (file.left_out, file.added, file.removed) == (None, 1, 1)


async def test_a_tree_diff_comes_in_pages_of_one_state(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        start = (await alice.session_status()).head
        for name in "dcba":
            await alice.write_file(f"{name}.txt", f"{name}\n" * 40, mode="create")
        await alice.write_file("big.txt", "something longer\n" * 400, mode="create")
        whole = await alice.get_diff(from_=start, max_tokens=200_000)
        read: list[r.FileDiff] = []
        text, cursor = "", None
        for _ in range(10):
            page = await alice.get_diff(from_=start, max_tokens=130, cursor=cursor)
            read += page.files
            text += page.diff
            cursor = page.cursor
            assert page.total_files == 5
            if cursor is None:
                break
            await alice.write_file(f"later-{len(read)}.txt", "x\n", mode="create")  # in no page
        assert [file.path for file in read] == [file.path for file in whole.files]
        (large,) = (file for file in read if file.left_out)
        assert (large.path, large.left_out, large.added) == ("big.txt", "too_large", 400)
        assert large.next == f'get_diff(path="big.txt", from="{page.from_version}", to="{page.to_version}")'
        before, _, rest = whole.diff.partition("diff --git a/big.txt")
        assert text == before + rest[rest.index("diff --git") :]


async def test_a_tree_diff_without_from_begins_with_the_session(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        await alice.write_file("a.txt", "one\n", mode="create")
        async with daemon.client("bob") as bob:
            await bob.write_file("b.txt", "one\n", mode="create")
            assert [file.path for file in (await bob.get_diff()).files] == ["b.txt"]
        seen = await alice.get_diff()
        assert [file.path for file in seen.files] == ["a.txt", "b.txt"]
        # what a diff showed whole may be replaced
        written = await alice.write_file("b.txt", "two\n", mode="truncate")
        assert written.status == "applied"
        for parameters, code in (
            ({"from_": "@99999"}, "version_unknown"),
            ({"to": "abc"}, "invalid_parameter"),
            ({"cursor": "x"}, "invalid_parameter"),
            ({"cursor": "@1..@99999:a"}, "version_unknown"),
            ({"path": "a.txt", "cursor": "@1..@2:a"}, "invalid_parameter"),
        ):
            with pytest.raises(RemoteError) as refused:
                await alice.get_diff(**parameters)  # type: ignore[arg-type]  # a table of keywords
            assert refused.value.code == code
    done = cli_bytes(daemon, "diff")
    assert done.returncode == 2
    assert b"--from" in done.stderr


# --- replay ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [20, pytest.param(21, marks=pytest.mark.soak)])
async def test_replay_gives_every_state_that_was(free: RunningDaemon, seed: int) -> None:
    """The main property: a random history; after each step a copy of the tree; replay gives each copy."""
    choose = random.Random(seed)
    work = free.workspace
    (work / "deep").mkdir()
    (work / "first.txt").write_text("first\n")
    (work / "deep/er").write_bytes(b"\0binary\xff")
    copies: list[tuple[int, dict[str, tuple[bytes, int]]]] = []
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            for step in range(30):
                present = sorted(files_in(work))
                name = choose.choice(present) if present else "first.txt"
                fresh = choose.choice(["", "deep/", "x/y/", "with blank/ü/"]) + f"{step}.txt"
                text = "".join(choose.choice(["a", "b", "ä"]) + choose.choice(["\n", "\r\n"]) for _ in range(step % 7))
                match choose.choice(["create", "append", "delete", "move", "write", "mode", "swap", "remove"]):
                    case "create":
                        await alice.write_file(fresh, text, mode="create")
                    case "append" if name != "deep/er":
                        await alice.write_file(name, f"{step}\n", mode="append")
                    case "delete" if len(present) > 2:
                        await alice.delete_file(name, base=(await alice.file_info(name)).version_id)
                    case "move":
                        await alice.move_file(name, fresh, base=(await alice.file_info(name)).version_id)
                    case "write":
                        (work / name).write_text(f"outside {step}")
                    case "mode":
                        (work / name).chmod(choose.choice([0o600, 0o644, 0o755, 0o440]))
                    case "swap":
                        (work / fresh).parent.mkdir(parents=True, exist_ok=True)
                        (work / name).rename(work / fresh)
                    case _ if len(present) > 2:
                        (work / name).unlink()
                await person.get_diff(from_="working", to="working")  # the journal hears of what others did
                copies.append((await head(person), files_in(work)))
        for number, (at, copy) in enumerate(copies):
            into = free.base / "out" / str(number)
            done = cli_bytes(free, "replay", "--to", f"@{at}", "--into", str(into), "--json")
            assert done.returncode == 0, done
            assert files_in(into) == copy, f"step {number}, @{at}"
            reported = json.loads(done.stdout)
            assert (reported["files"], reported["complete"], reported["left_out"]) == (len(copy), True, [])
        checked = cli_bytes(free, "replay", "--check", "--json")
        assert (checked.returncode, json.loads(checked.stdout).get("differences", [])) == (0, []), checked


async def test_replay_refuses_where_it_may_not_write(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice:
        await alice.write_file("a.txt", "one\n", mode="create")
        await alice.create_directory("folder")
    base = daemon.base
    (base / "full").mkdir()
    (base / "full/x").touch()
    (base / "file").touch()
    (base / "link").symlink_to(base / "elsewhere")
    (base / "elsewhere").mkdir()
    (base / "mirror").symlink_to(daemon.workspace)
    inside = daemon.workspace / "folder"
    for into in ("full", "file", "link", str(inside), str(inside / "new"), "mirror/new", str(daemon.workspace), "."):
        done = cli_bytes(daemon, "replay", "--to", "current", "--into", into, "--json")
        assert (done.returncode, refusal(done)) == (1, "output_path_refused"), into
    assert os.listdir(inside) == os.listdir(base / "elsewhere") == []
    for at, code in (("@0", "version_unknown"), ("@99999", "version_unknown"), ("abc", "invalid_parameter")):
        done = cli_bytes(daemon, "replay", "--to", at, "--into", "new", "--json")
        assert (done.returncode, refusal(done)) == (1, code)
    assert not (base / "new").exists()
    for argv in (("--to", "@1"), ("--into", "new"), (), ("--check", "--to", "@1")):
        assert cli_bytes(daemon, "replay", *argv).returncode == 2
    (base / "empty").mkdir()
    assert cli_bytes(daemon, "replay", "--to", "current", "--into", "empty").returncode == 0
    assert files_in(base / "empty") == {"a.txt": (b"one\n", 0o644)}


async def test_replay_names_what_is_missing_and_goes_on(free: RunningDaemon) -> None:
    big = random.Random(1).randbytes(5_000_000).hex()
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            lost = await alice.write_file("a.txt", "lost\n", mode="create")
            await alice.write_file("b.txt", "kept\n", mode="create")
            await alice.write_file("big/c.txt", big, mode="create")
            for number in range(90):  # more than one page of small contents
                (free.workspace / f"s{number:02}").write_bytes(random.Random(number).randbytes(60_000))
            (free.workspace / "d.key").write_text("secret\n")
            info = await alice.file_info("a.txt")
            await person.get_diff(to="working")
    with sqlite3.connect(free.state_dir / "journal.db") as journal:
        gone = journal.execute("DELETE FROM blobs WHERE digest = ?", (info.content_hash,))
        assert gone.rowcount == 1
    journal.close()
    with running(free.base):
        done = cli_bytes(free, "replay", "--to", "current", "--into", "out", "--json")
        reported = json.loads(done.stdout)
        assert done.returncode == 1
        assert [(item["path"], item["reason"]) for item in reported["left_out"]] == [
            ("a.txt", "not_kept"),
            ("d.key", "policy"),
        ]
        assert (reported["files"], reported.get("complete", False)) == (92, False)
        out = files_in(free.base / "out")
        assert out == {name: file for name, file in files_in(free.workspace).items() if name not in ("a.txt", "d.key")}
        assert (out["b.txt"][0], out["big/c.txt"][0]) == (b"kept\n", big.encode())
        spoken = cli_bytes(free, "replay", "--to", "current", "--into", "out2")
        assert b"a.txt" in spoken.stdout
        assert b"incomplete" in spoken.stdout

    (blob,) = (path for path in (free.state_dir / "blobs").rglob("*") if path.is_file())
    blob.write_bytes(b"spoilt")
    with running(free.base):
        reported = json.loads(cli_bytes(free, "replay", "--to", "current", "--into", "out3", "--json").stdout)
        assert [item["reason"] for item in reported["left_out"]] == ["not_kept", "journal_corrupt", "policy"]
        assert "big/c.txt" not in files_in(free.base / "out3")

        checked = json.loads(cli_bytes(free, "replay", "--check", "--json").stdout)
        assert [(item["path"], item["kind"]) for item in checked["differences"]] == [
            ("a.txt", "lost"),
            ("big/c.txt", "lost"),
        ]
        async with free.client("alice") as alice:
            with pytest.raises(RemoteError) as refused:
                await alice.read_file("a.txt", at=lost.version_id)
            assert refused.value.code == "version_not_kept"


async def test_replay_check_names_every_kind_of_difference(free: RunningDaemon) -> None:
    work = free.workspace
    for name in ("content", "mode", "missing", "back", "fine", "link"):
        (work / name).write_text(f"{name}\n")
    with running(free.base, "--no-watch"):
        async with free.client("alice") as alice, free.client() as person:
            await alice.delete_file("back")
            assert (await person.replay_check()).ok
            (work / "content").write_text("Content\n")
            (work / "mode").chmod(0o700)
            (work / "missing").unlink()
            (work / "back").write_text("back\n")
            (work / "new").write_text("new\n")
            (work / "link").unlink()
            (work / "link").symlink_to("fine")
            end = await head(person)
            report = await person.replay_check()
            assert {(item.path, item.kind) for item in report.differences} == {
                ("back", "extra"),
                ("content", "content"),
                ("link", "kind"),
                ("missing", "missing"),
                ("mode", "mode"),
                ("new", "extra"),
            }
            left = (await person.journal_query(since=str(end + 1))).entries
            assert {entry.kind for entry in left} <= {"answer_shown", "session_opened"}, "a check changes nothing"
            with pytest.raises(RemoteError) as refused:
                await alice.replay_check()
            assert refused.value.code == "not_permitted"
        spoken = cli_bytes(free, "replay", "--check")
        assert spoken.returncode == 1
        assert b"mode 0644" not in spoken.stdout
        assert b"not ok" in spoken.stdout


async def test_trees_and_contents_for_programs(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            made = await alice.write_file("a.txt", "0123456789", mode="create")
            await alice.write_file("b.txt", "b", mode="create")
            (free.workspace / "s.key").write_text("secret\n")
            (free.workspace / "hidden").write_text("secret\n")
            await person.get_diff(to="working")
            first = await person.tree_at(limit=1)
            await alice.write_file("aa.txt", "later", mode="create")
            rest = await person.tree_at(cursor=first.cursor)
            assert [entry.path for entry in (*first.entries, *rest.entries)] == ["a.txt", "b.txt", "s.key"]
            assert (rest.unlisted, rest.at) == (1, first.at)
            assert rest.entries[-1].digest is None
            assert rest.entries[-1].left_out == "policy"
            past = await person.tree_at(at=made.change or "")
            assert [(entry.path, entry.size, entry.mode) for entry in past.entries] == [("a.txt", 10, "0644")]

            carried = await person.tree_at(at=first.at, contents=True)
            assert [entry.data for entry in carried.entries] == [b"0123456789", b"b", None]
            piece = await person.content_at("a.txt", first.at, offset=3, limit=4)
            assert (piece.data, piece.next, piece.size) == (b"3456", 7, 10)
            last = await person.content_at("a.txt", first.at, offset=7)
            assert (last.data, last.next) == (b"789", None)
            for path, at, offset, code in (
                ("a.txt", "@0", 0, "version_unknown"),
                ("a.txt", "@9999", 0, "version_unknown"),
                ("a.txt", first.at, 11, "invalid_parameter"),
                ("b.txt", made.version_id, 0, "not_found"),
                ("s.key", first.at, 0, "denied"),
                ("../x", first.at, 0, "path_not_canonical"),
            ):
                with pytest.raises(RemoteError) as refused:
                    await person.content_at(path, at or "", offset=offset)
                assert refused.value.code == code
            with pytest.raises(RemoteError) as agents:
                await alice.tree_at()
            assert agents.value.code == "not_permitted"
            with pytest.raises(RemoteError) as cursor:
                await person.tree_at(cursor="nonsense")
            assert cursor.value.code == "invalid_parameter"
    assert t.CHUNK_BYTES * 4 // 3 < 16 * 1024 * 1024


# --- how it is shown -------------------------------------------------------------------------

SHOWN = r.Diff(
    path=".",
    from_version="@1",
    to_version="@9",
    diff="diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+\x1b[2Jy\n",
    added=1,
    removed=1,
    files=(
        r.FileDiff(path="a", status="modified", added=1, removed=1),
        r.FileDiff(path="b\x1b.key", status="added", left_out="policy"),
        r.FileDiff(path="c", status="modified", left_out="too_large", next='get_diff(path="c", from="@1", to="@9")'),
        r.FileDiff(path="d", status="mode", mode_before="0644", mode_after="0600"),
    ),
    total_files=7,
    unlisted=2,
    cursor="@1..@9:d",
)


def test_a_model_reads_what_is_left_out_behind_the_markers() -> None:
    text = text_block(SHOWN)
    assert text is not None
    (token,) = re.findall(r"^<content ([0-9a-f]{12})>$", text, re.MULTILINE)
    head, _, rest = text.partition(f"\n<content {token}>\n")
    body, _, tail = rest.partition(f"</content {token}>\n")
    assert head == "tree @1 → @9: 7 differing files; shown here: 4, +1 -1"
    assert body == SHOWN.diff
    assert tail.split("\n") == [
        "[left out (policy): b\\x1b.key, added]",
        '[left out (too_large): c, modified: get_diff(path="c", from="@1", to="@9")]',
        "[mode 0644 → 0600: d]",
        "[2 more files differ; policy keeps their names]",
        "[more follows: the same call with cursor='@1..@9:d']",
    ]
    same = r.Diff(path=".", from_version="@1", to_version="@1", diff="", added=0, removed=0, total_files=0)
    assert "(no difference in lines)" in (text_block(same) or "")


def test_a_person_reads_nothing_that_moves_the_terminal() -> None:
    lines = [click.unstyle(line) for line in rendered(SHOWN)]
    assert not [line for line in lines if "\x1b" in line]
    assert lines[-5:] == [
        "b\\x1b.key (added): left out, policy",
        "c (modified): left out, too_large: orchestrator diff c --from @1 --to @9",
        "d: mode 0644 became 0600",
        "policy keeps the names of 2 more files that differ from you",
        "7 files differ: 1 line added, 1 removed",
    ]


async def test_start_is_the_state_when_the_first_scan_was_over(free: RunningDaemon, tmp_path: Path) -> None:
    """A scan of 1,001 files is three events; a state between them lacks files, and says so."""
    for number in range(1001):
        (free.workspace / f"f{number:04}").write_text(f"{number}\n")
    free.start()
    async with free.client("alice") as alice, free.client() as person:
        found = [entry.seq for entry in (await person.journal_query(kind="files_found", limit=100)).entries]
        first, whole = found[-1], found[-3]
        await alice.write_file("f0000", "changed\n", mode="append")
        late = await person.get_diff(from_=first)
        assert late.total_files == 502
        assert any(f"{first} is within the first scan" in warning and "@start" in warning for warning in late.warnings)
        diff = await person.get_diff(from_="@start")
        assert (diff.from_version, diff.total_files, diff.warnings) == (whole, 1, ())
        assert (await alice.read_file("f0000", at="@start", line_numbers=False)).text == "0\n"
        (change,) = (await person.changes_since(version="@start")).changes
        assert change.path == "f0000"
        undone = await person.rollback(agent="alice", since="@start", preview=True)
        assert [item.path for item in undone.files] == ["f0000"]
    cut = cli_bytes(free, "replay", "--to", first, "--into", str(tmp_path / "cut"))
    assert b"incomplete" in cut.stdout
    assert b"within the first scan" in cut.stdout + cut.stderr
    ended = cli_bytes(free, "replay", "--to", "@start", "--into", str(tmp_path / "whole"))
    assert (ended.returncode, len(list((tmp_path / "whole").iterdir()))) == (0, 1001)
    assert (tmp_path / "whole" / "f0000").read_text() == "0\n"
