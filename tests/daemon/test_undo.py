"""rollback, and revert of changes of several files: what is chosen goes, what others did stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.crash.scenarios import POLICY
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import git, resolved, seen

pytestmark = pytest.mark.anyio

TEXT = "".join(f"line {n}\n" for n in range(1, 21))


@pytest.fixture
def free(base: Path) -> RunningDaemon:
    """A daemon that is not started yet, under a policy that lets everything through."""
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    work = daemon.workspace
    for name in ("a.txt", "b.txt", "src/c.txt"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(TEXT)
    return daemon


def tree(root: Path) -> dict[str, str]:
    """Every file but those that git and the daemon keep for themselves; a swapped-out content goes after the answer."""
    found = (path for path in root.rglob("*") if not path.name.startswith(".orchestrator-"))
    files = (path for path in found if ".git" not in path.parts and path.is_file())
    return {str(path.relative_to(root)): path.read_text() for path in files}


async def edit(files: FileAccess, path: str, line: int, text: str) -> str:
    answer = await files.edit_file(path, [Replacement(search=f"line {line}\n", replace=f"{text}\n")])
    assert answer.status == "applied", answer
    return answer.change or ""


def without(**changed: dict[int, str]) -> dict[str, str]:
    """The tree with these lines, by file."""
    found = dict.fromkeys(("a.txt", "b.txt", "src/c.txt"), TEXT)
    for name, lines in changed.items():
        path = name.replace("_", ".")
        path = f"src/{path}" if path == "c.txt" else path
        for line, text in lines.items():
            found[path] = found[path].replace(f"line {line}\n", f"{text}\n")
    return found


async def agrees(daemon: RunningDaemon) -> None:
    async with daemon.client() as person:
        assert (await person.replay_check()).differences == ()
        assert (await person.journal_verify()).problems == ()
        assert (await person.journal_rebuild()).first_difference is None


async def test_an_agents_work_goes_and_the_others_stays(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            first = await edit(alice, "a.txt", 3, "alice")
            await edit(alice, "b.txt", 3, "alice")
            await alice.write_file("new.txt", "alice\n", mode="create")
            await edit(bob, "a.txt", 15, "bob")
            await edit(bob, "src/c.txt", 1, "bob")
            end = tree(free.workspace)
            preview = await bob.rollback(agent="alice", preview=True)
            assert (preview.status, preview.would_be) == ("preview", "applied")
            assert tree(free.workspace) == end
            assert {(item.path, item.status, item.added, item.removed) for item in preview.files} == {
                ("a.txt", "changed", 1, 1),
                ("b.txt", "changed", 1, 1),
                ("new.txt", "deleted", 0, 1),
            }
            assert "+line 3" in (next(item.diff for item in preview.files if item.path == "a.txt") or "")
            assert [(item.path, item.agent, item.on, item.overlaps) for item in preview.dependencies] == [
                ("a.txt", "bob", (first,), False)
            ]
            done = await bob.rollback(agent="alice", reason="a wrong turn")
            assert (done.status, done.conflicts, len(done.changes)) == ("applied", (), 3)
            assert tree(free.workspace) == without(a_txt={15: "bob"}, c_txt={1: "bob"})
            history = (await bob.file_history("a.txt")).versions[0]
            assert (history.agent, history.reason, history.reverts) == ("bob", "a wrong turn", done.changes)
            with pytest.raises(RemoteError) as nothing:
                await bob.rollback(agent="alice")
            assert nothing.value.code == "nothing_to_change"
            back = await alice.revert(done.change or "")
            assert back.status == "applied"
            assert tree(free.workspace) == end
            again = await bob.rollback(agent="alice", globs=["b.txt"])
            assert again.status == "applied"
            assert tree(free.workspace) == {**end, "b.txt": TEXT}
        await agrees(free)


async def test_what_overlaps_waits_for_a_person_beside_the_rest(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob, free.client() as person:
            await edit(alice, "a.txt", 3, "alice")
            await edit(alice, "b.txt", 3, "alice")
            await bob.edit_file("a.txt", [Replacement(search="alice\n", replace="bob\n")])
            preview = await alice.rollback(session=alice.session, preview=True)
            assert {(item.path, item.status) for item in preview.files} == {("a.txt", "conflict"), ("b.txt", "changed")}
            done = await alice.rollback(session=alice.session, request_id="once")
            assert (done.status, len(done.conflicts)) == ("applied", 1)
            assert tree(free.workspace) == without(a_txt={3: "bob"})
            same = await alice.rollback(session=alice.session, request_id="once")
            assert (same.status, same.change) == ("applied", done.change)
            code = await free.make_approver()
            resolved_ = await person.resolve_conflict(done.conflicts[0], "proposed", approver=code)
            assert resolved_.status == "applied"
            assert tree(free.workspace) == without()
        await agrees(free)


async def test_nothing_but_overlaps_is_a_conflict(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            for path in ("a.txt", "b.txt"):
                await edit(alice, path, 3, "alice")
                await bob.edit_file(path, [Replacement(search="alice\n", replace="bob\n")])
            done = await bob.rollback(agent="alice")
            assert (done.status, len(done.conflicts)) == ("conflict", 2)
            assert tree(free.workspace) == without(a_txt={3: "bob"}, b_txt={3: "bob"})


async def test_a_task_and_spans_of_the_journal(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice:
            await edit(alice, "a.txt", 1, "before")
            task = await alice.begin_task("a task")
            await edit(alice, "a.txt", 5, "in the task")
            middle = (await alice.session_status()).head
            await edit(alice, "b.txt", 5, "in the task too")
            await alice.end_task(task.task)
            await edit(alice, "b.txt", 9, "after")
            assert (await alice.rollback(since=middle, preview=True)).paths[0].path == "b.txt"
            number = int(middle.removeprefix("@"))
            for bare in (number, str(number)):
                assert (await alice.rollback(since=bare, preview=True)).changes == (
                    await alice.rollback(since=middle, preview=True)
                ).changes
            until = await alice.rollback(until=middle, preview=True)
            assert {item.path for item in until.files} == {"a.txt"}
            assert (await alice.rollback(task=task.task)).status == "applied"
            assert tree(free.workspace) == without(a_txt={1: "before"}, b_txt={9: "after"})
        await agrees(free)


async def test_of_a_person(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client() as person:
            await edit(person, "a.txt", 1, "by hand")
            assert (await person.rollback(agent=person.agent)).status == "applied"
            assert tree(free.workspace) == without()


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        pytest.param({}, "invalid_parameter", id="nothing said"),
        pytest.param({"agent": "nobody"}, "nothing_to_change", id="an agent that never called"),
        pytest.param({"since": "@9999"}, "invalid_parameter", id="ahead of the journal"),
        pytest.param({"since": 9999}, "invalid_parameter", id="a number ahead of the journal"),
        pytest.param({"until": 1_700_000_000_000}, "invalid_parameter", id="milliseconds"),
        pytest.param({"since": "yesterday"}, "invalid_parameter", id="no moment"),
        pytest.param({"globs": ["*.nothing"]}, "nothing_to_change", id="nothing fits"),
        pytest.param({"until": "2001-01-01"}, "nothing_to_change", id="long ago"),
        pytest.param({"task": "@1"}, "nothing_to_change", id="no such task"),
        pytest.param({"task": "@9999"}, "nothing_to_change", id="a task ahead of the journal"),
        pytest.param({"session": "nope"}, "nothing_to_change", id="no such session"),
        pytest.param({"session": "nope", "globs": ["*"]}, "nothing_to_change", id="no such session, and globs"),
    ],
)
async def test_what_selects_nothing_says_so(free: RunningDaemon, wanted: dict[str, object], code: str) -> None:
    with running(free.base):
        async with free.client("alice") as alice:
            await edit(alice, "a.txt", 1, "one")
            before = tree(free.workspace)
            with pytest.raises(RemoteError) as refused:
                await alice.rollback(**wanted)  # type: ignore[arg-type]  # a table of calls
            assert refused.value.code == code
            assert "`orchestrator" not in refused.value.hint, "an agent has no command line"
            assert refused.value.hint
            assert tree(free.workspace) == before


async def test_others_work_asks_a_person_once_for_all(daemon: RunningDaemon) -> None:
    """The default policy: own work is undone at once, another agent's waits for a yes, which covers all files."""
    for name in ("a.txt", "b.txt"):
        (daemon.workspace / name).write_text(TEXT)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await edit(alice, "a.txt", 3, "alice")
        await edit(alice, "b.txt", 3, "alice")
        waiting = await bob.rollback(agent="alice")
        assert waiting.status == "waiting"
        shown = await person.approvals_show(waiting.approval or "")
        assert set(shown.paths) == {"a.txt", "b.txt"}
        assert (shown.diff or "").count("+line 3") == 2
        done = await person.approve(waiting.approval or "", approver=await daemon.make_approver(), unseen=True)
        assert done.status == "applied"
        assert tree(daemon.workspace) == {"a.txt": TEXT, "b.txt": TEXT}
        await edit(alice, "a.txt", 3, "alice")
        assert (await alice.rollback(agent="alice")).status == "applied"


async def test_a_file_that_a_person_lets_be_renamed_keeps_its_lines(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text(TEXT)
    patch = """--- a/a.txt
+++ b/moved.txt
@@ -3,1 +3,1 @@
-line 3
+bob
"""
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await edit(alice, "a.txt", 9, "alice")
        await bob.read_file("a.txt")
        waiting = await bob.apply_patch(patch)
        assert waiting.status == "waiting"
        shown = await person.approvals_show(waiting.approval or "")
        assert "rename from a.txt\nrename to moved.txt\n" in (shown.diff or "")
        assert "-line 3\n+bob\n" in (shown.diff or "")
        done = await person.approve(waiting.approval or "", approver=await daemon.make_approver(), unseen=True)
        assert done.status == "applied"
        by = {line: item.agent for item in (await bob.blame("moved.txt")).ranges for line in (item.start, item.end)}
        assert (by[3], by[9]) == ("bob", "alice")
        assert set(by.values()) == {"bob", "alice", "outside"}


async def test_what_a_hidden_name_held_is_not_shown_under_another(daemon: RunningDaemon) -> None:
    """An agent undoes what was done to a secret that was moved to a name that it may see since."""
    work = daemon.workspace
    secret = "KEY=ZZSECRET\n" + TEXT
    async with daemon.client("spy") as spy, daemon.client() as person:
        (work / "prod.env").write_text(secret)
        await seen(person, work)
        before = (await person.file_info("prod.env")).version_id
        gone = secret.replace("ZZSECRET", "gone")  # through the daemon: what others do to a secret is not kept
        waiting = await person.write_file("prod.env", gone, mode="truncate", base=before)
        await person.approve(waiting.approval or "", approver=await daemon.make_approver(), unseen=True)
        changed = (await person.file_info("prod.env")).version_id
        moving = await person.move_file("prod.env", "opts.txt")
        await person.approve(moving.approval or "", approver=await daemon.make_approver(), unseen=True)
        preview = await spy.revert(changed or "", preview=True)
        assert "ZZSECRET" not in repr(preview)
        assert "ZZSECRET" not in repr(await spy.rollback(agent="outside", preview=True))
        await edit(spy, "opts.txt", 1, "spy")
        await spy.edit_file("opts.txt", [Replacement(search="KEY=gone\n", replace="KEY=spied\n")])
        answers = [await spy.revert(changed or ""), await spy.list_conflicts()]
        assert "ZZSECRET" not in repr(answers)
        (conflict,) = (await person.list_conflicts()).conflicts
        assert "KEY=spied" in (conflict.current or "")
        assert (conflict.base, conflict.proposed, conflict.diff) == (None, None, None)


async def test_what_has_another_kind_since_does_not_keep_the_rest(free: RunningDaemon) -> None:
    """A file became a folder, a link, and something else: these stay, all else goes back."""
    work = free.workspace
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            for path in ("a.txt", "b.txt", "src/c.txt"):
                await edit(alice, path, 3, "alice")
            (work / "a.txt").unlink()
            (work / "a.txt").mkdir()
            (work / "a.txt" / "inside").write_text("inside\n")
            (work / "b.txt").unlink()
            (work / "b.txt").symlink_to("src/c.txt")
            undone = await bob.rollback(agent="alice")
            assert undone.status == "applied"
            assert (work / "src/c.txt").read_text() == TEXT
            assert (work / "a.txt/inside").read_text() == "inside\n"
            assert (work / "b.txt").is_symlink()
            assert {item.path for item in undone.files} == {"src/c.txt"}
            assert len(undone.warnings) == 2
        async with free.client() as person:
            await seen(person, work)
        await agrees(free)


async def test_permission_bits_that_somebody_set_stay(free: RunningDaemon) -> None:
    path = free.workspace / "a.txt"
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            await edit(alice, "a.txt", 1, "alice")
            path.chmod(0o755)
            await person.file_info("a.txt")
            change = await edit(alice, "a.txt", 3, "alice")
            assert (await alice.revert(change)).status == "applied"
            assert path.stat().st_mode & 0o777 == 0o755
            gone = await alice.delete_file("a.txt")
            assert (await alice.revert(gone.change or "")).status == "applied"
            assert path.stat().st_mode & 0o777 == 0o755
            await alice.read_file("a.txt")
            moved = await alice.apply_patch("--- a/a.txt\n+++ b/m.txt\n@@ -2,1 +2,1 @@\n-line 2\n+moved\n")
            assert (await alice.revert(moved.change or "")).status == "applied"
            assert path.stat().st_mode & 0o777 == 0o755


async def test_the_same_conflict_waits_once(free: RunningDaemon) -> None:
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            change = await edit(alice, "a.txt", 3, "alice")
            await bob.edit_file("a.txt", [Replacement(search="alice\n", replace="bob\n")])
            first, second = await alice.revert(change), await alice.revert(change)
            assert first.status == second.status == "conflict"
            assert first.conflict == second.conflict
            assert len((await alice.list_conflicts()).conflicts) == 1


async def test_a_branch_switch_is_undone_as_one(free: RunningDaemon) -> None:
    work = free.workspace
    git(work, "init", "-q", "-b", "main")
    git(work, "add", ".")
    git(work, "commit", "-qm", "main")
    git(work, "checkout", "-qb", "other")
    (work / "a.txt").write_text("other\n")
    (work / "new.txt").write_text("only here\n")
    git(work, "mv", "b.txt", "renamed.txt")
    git(work, "commit", "-qam", "other")
    git(work, "add", ".")
    git(work, "commit", "-qm", "more")
    git(work, "checkout", "-q", "main")
    with running(free.base):
        async with free.client("alice") as alice, free.client() as person:
            for path in ("a.txt", "b.txt", "src/c.txt"):
                await alice.read_file(path)  # so that every content is kept
            git(work, "checkout", "-q", "other")
            group = await resolved(person, 4)
            assert (await alice.revert(f"@{group.event['group']}")).status == "applied"
            assert tree(work) == without()
            await edit(alice, "a.txt", 2, "alice")
            with pytest.raises(RemoteError) as nothing:  # both halves of a rename by other hands are undone
                await alice.rollback(agent="outside", preview=True)
            assert nothing.value.code == "nothing_to_change"
        await agrees(free)


async def test_a_folder_is_moved_edited_and_moved_back(free: RunningDaemon) -> None:
    (free.workspace / ".gitignore").write_text("*.pyc\n")
    (free.workspace / "src" / "deep").mkdir()
    (free.workspace / "src" / "deep" / "d.txt").write_text(TEXT)
    (free.workspace / "src" / "x.pyc").write_text("ignored")
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            moved = await alice.move_file("src", "lib")
            assert moved.status == "applied"
            assert not (free.workspace / "src" / "deep").exists(), "what is empty goes"
            assert (free.workspace / "src" / "x.pyc").read_text() == "ignored", "what is ignored stays"
            await edit(bob, "lib/c.txt", 4, "bob")
            assert (await alice.revert(moved.change or "")).status == "applied"
            assert (free.workspace / "src/c.txt").read_text() == TEXT.replace("line 4", "bob")
            assert (free.workspace / "src/deep/d.txt").read_text() == TEXT
            gone = await alice.delete_file("src")
            assert gone.status == "applied"
            assert not (free.workspace / "src/c.txt").exists()
            assert (await alice.revert(gone.change or "")).status == "applied"
            assert (free.workspace / "src/deep/d.txt").read_text() == TEXT
            for source, target, code in (
                ("src", "src/inside", "invalid_parameter"),
                ("src", "a.txt", "already_exists"),
                ("src", "lib/../x", "path_not_canonical"),
            ):
                with pytest.raises(RemoteError) as refused:
                    await alice.move_file(source, target)
                assert refused.value.code == code
        await agrees(free)


@pytest.mark.parametrize(
    ("moves", "files"),
    [
        pytest.param(
            (("src/c.txt", "d4/x/c.txt"), ("a.txt", "src/c.txt")),
            {("a.txt", "moved", "src/c.txt"), ("src/c.txt", "moved", "d4/x/c.txt")},
            id="a chain",
        ),
        pytest.param(
            (("a.txt", "t.txt"), ("b.txt", "a.txt"), ("t.txt", "b.txt")),
            {("a.txt", "moved", "b.txt"), ("b.txt", "moved", "a.txt")},
            id="two that changed places",
        ),
    ],
)
async def test_files_that_took_each_others_places_go_back_and_forth(
    free: RunningDaemon, moves: tuple[tuple[str, str], ...], files: set[tuple[str, str, str]]
) -> None:
    """Each stays the file that it was: by its lines' authors, by what is told, and when the undo is undone."""
    names = ("a.txt", "b.txt", "src/c.txt")
    for name in names:
        (free.workspace / name).write_text(f"this is {name}\n" + TEXT)
    start = tree(free.workspace)
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            await edit(alice, "src/c.txt", 3, "alice")
            given = tree(free.workspace)
            for source, target in moves:
                assert (await bob.move_file(source, target)).status == "applied"
            moved = tree(free.workspace)
        async with free.client() as person:
            preview = await person.rollback(agent="bob", preview=True)
            assert {(item.path, item.status, item.moved_from) for item in preview.files} == files
            rolled = await person.rollback(agent="bob")
            assert (rolled.status, rolled.conflicts) == ("applied", ())
            assert tree(free.workspace) == given
            for name in names:
                lines = (await person.blame(name)).ranges
                assert {(part.kind, part.agent) for part in lines} == (
                    {("found", None), ("change", "alice")} if name == "src/c.txt" else {("found", None)}
                )
            back = await person.revert(rolled.change or "")
            assert (back.status, back.conflict) == ("applied", None)
            assert "overlap" not in back.message
            assert tree(free.workspace) == moved
            again = await person.revert(back.change or "")
            assert again.status == "applied"
            assert tree(free.workspace) == given
        assert start != given
        await agrees(free)


async def test_one_protected_file_makes_a_whole_folder_ask(daemon: RunningDaemon) -> None:
    (daemon.workspace / "pkg").mkdir()
    (daemon.workspace / "pkg" / "a.txt").write_text("a\n")
    async with daemon.client("alice") as alice:
        waiting = await alice.move_file("pkg", ".vscode")
        assert waiting.status == "waiting"
        assert (daemon.workspace / "pkg" / "a.txt").exists()
        with pytest.raises(RemoteError) as denied:
            await alice.move_file("pkg", ".git/hooks")
        assert denied.value.code == "denied"


async def test_a_patch_says_what_is_executable(free: RunningDaemon) -> None:
    work = free.workspace
    patch = """diff --git a/run.sh b/run.sh
new file mode 100755
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+true
diff --git a/a.txt b/a.txt
old mode 100644
new mode 100755
diff --git a/b.txt b/moved.txt
old mode 100644
new mode 100755
rename from b.txt
rename to moved.txt
diff --git a/src/c.txt b/src/c.txt
old mode 100644
new mode 100755
--- a/src/c.txt
+++ b/src/c.txt
@@ -1,1 +1,1 @@
-line 1
+first
"""

    def executable() -> set[str]:
        return {path for path in tree(work) if (work / path).stat().st_mode & 0o111 == 0o111}

    with running(free.base):
        async with free.client("alice") as alice:
            for path in ("a.txt", "b.txt", "src/c.txt"):
                await alice.read_file(path)
            done = await alice.apply_patch(patch)
            assert executable() == {"run.sh", "a.txt", "moved.txt", "src/c.txt"}
            assert (work / "src/c.txt").read_text().startswith("first\n")
            alone = await alice.apply_patch("diff --git a/a.txt b/a.txt\nold mode 100755\nnew mode 100644\n")
            assert executable() == {"run.sh", "moved.txt", "src/c.txt"}
            assert (await alice.revert(alone.change or "")).status == "applied"
            assert (await alice.revert(done.change or "")).status == "applied"
            assert tree(work) == without()
            assert executable() == set()
        await agrees(free)


async def test_a_patch_of_several_files_is_whole_or_not_there(free: RunningDaemon) -> None:
    patch = """--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-line 1
+alice
 line 2
diff --git a/b.txt b/moved/b.txt
rename from b.txt
rename to moved/b.txt
--- /dev/null
+++ b/made.txt
@@ -0,0 +1 @@
+made
"""
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            await alice.read_file("a.txt")
            await alice.read_file("b.txt")
            preview = await alice.apply_patch(patch, preview=True)
            assert preview.would_be == "applied"
            assert "rename to moved/b.txt" in (preview.diff or "")
            await bob.write_file("made.txt", "bob was first\n", mode="create")
            before = tree(free.workspace)
            with pytest.raises(RemoteError) as refused:
                await alice.apply_patch(patch)
            assert refused.value.code in ("already_exists", "changes_conflict")
            assert tree(free.workspace) == before
            await bob.delete_file("made.txt")
            done = await alice.apply_patch(patch, base=preview.base)
            assert done.status == "applied"
            expected = without(a_txt={1: "alice"})
            expected["moved/b.txt"] = expected.pop("b.txt")
            assert tree(free.workspace) == {**expected, "made.txt": "made\n"}
            lines = (await bob.blame("moved/b.txt")).ranges
            assert {item.agent for item in lines} == {None}
            undone = await bob.revert(done.change or "")
            assert undone.status == "applied"
            assert tree(free.workspace) == without()
        await agrees(free)


@pytest.mark.parametrize(
    ("hunk", "code", "said"),
    [
        ("@@ -1,1 +1,1 @@\n-not there\n+x\n", "search_not_found", "b.txt, hunk 1 (for line 1): its passage of context"),
        ("@@ -30,1 +30,1 @@\n-same\n+x\n", "search_ambiguous", "b.txt, hunk 1 (for line 30): its lines occur 2 times"),
        ("@@ -1,1 +1,1 @@\n-1\n+x\n@@ -1,1 +1,1 @@\n-1\n+y\n", "changes_overlap", "b.txt, hunks 1 and 2 both change"),
    ],
)
async def test_of_several_files_the_one_whose_patch_does_not_fit_is_named(
    daemon: RunningDaemon, hunk: str, code: str, said: str
) -> None:
    (daemon.workspace / "a.txt").write_text("one\n")
    (daemon.workspace / "b.txt").write_text("1\n2\nsame\n4\nsame\n")
    before = tree(daemon.workspace)
    text = f"--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n--- a/b.txt\n+++ b/b.txt\n{hunk}"
    async with daemon.client("alice") as alice:
        for path in ("a.txt", "b.txt"):
            await alice.read_file(path)
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(text)
    assert refused.value.code == code
    assert refused.value.message.startswith(said)
    assert refused.value.details["path"] == "b.txt"
    assert tree(daemon.workspace) == before


async def test_a_file_that_changed_under_a_patch_of_several_is_named(free: RunningDaemon) -> None:
    patch = "".join(
        f"--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n-line 1\n+alice\n line 2\n" for name in ("a.txt", "b.txt")
    )
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            await alice.read_file("a.txt")
            await alice.read_file("b.txt")
            await edit(bob, "b.txt", 1, "bob")
            with pytest.raises(RemoteError) as refused:
                await alice.apply_patch(patch)
            assert refused.value.code == "changes_conflict"
            assert [item["path"] for item in refused.value.details["files"]] == ["b.txt"]
            assert tree(free.workspace) == without(b_txt={1: "bob"})


async def test_no_temporary_file_is_left_when_a_rollback_of_several_files_is_answered(free: RunningDaemon) -> None:
    for n in range(200):
        (free.workspace / f"many{n}.txt").write_text("old\n")
    with running(free.base):
        async with free.client() as person:
            while (await person.status()).health.baseline != "done":
                pass  # each turn is an answered call
            await seen(person, free.workspace)
            head = (await person.status()).head
            for n in range(200):
                (free.workspace / f"many{n}.txt").write_text("changed\n")
            await seen(person, free.workspace)
            undone = await person.rollback(agent="outside", since=head, globs=["many*"])
            left = [*free.workspace.rglob(".orchestrator-*")]
            assert (undone.status, left) == ("applied", [])
            assert (free.workspace / "many7.txt").read_text() == "old\n"


async def test_folders_that_the_undone_work_made_go_where_nothing_is_left(free: RunningDaemon) -> None:
    (free.workspace / "was" / "there").mkdir(parents=True)
    with running(free.base):
        async with free.client("alice") as alice, free.client("bob") as bob:
            for path in ("new/deep/a.txt", "kept/b.txt", "was/there/c.txt", "shared/d.txt", "hollow/e.txt"):
                await alice.write_file(path, "alice\n", mode="create")
            await bob.write_file("shared/bob.txt", "bob\n", mode="create")
            (free.workspace / "hollow" / "by hand").mkdir()
            await bob.rollback(agent="alice")
            present = {str(path.relative_to(free.workspace)) for path in free.workspace.rglob("*") if path.is_dir()}
            assert present == {"src", "was", "was/there", "shared", "hollow", "hollow/by hand"}
    with running(free.base):
        await agrees(free)


async def test_folders_that_other_hands_made_go_with_the_undo_of_their_files(free: RunningDaemon) -> None:
    (free.workspace / "was").mkdir()
    with running(free.base):
        async with free.client() as person:
            await seen(person, free.workspace)
            head = (await person.status()).head
            for n in range(30):
                folder = free.workspace / "moved" / f"d{n % 5}" / "deep"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"f{n}.txt").write_text(f"{n}\n")
            (free.workspace / "was" / "f.txt").write_text("x\n")
            await seen(person, free.workspace)
            undone = await person.rollback(agent="outside", since=head, globs=["moved/**", "was/**"])
            assert undone.status == "applied"
            assert not (free.workspace / "moved").exists()
            assert [*free.workspace.rglob(".orchestrator-*")] == []
            assert [*(free.workspace / "was").iterdir()] == []
            await agrees(free)


async def test_a_folder_whose_move_a_person_granted_goes_as_well(base: Path) -> None:
    daemon = RunningDaemon(base)
    asks = '\n[[rule]]\nname = "moves"\nagents = ["*"]\nactions = ["move"]\npaths = ["**"]\nverdict = "ask"\n'
    (daemon.state_dir / "policy.toml").write_text(POLICY + asks)
    (daemon.workspace / "tree" / "inner").mkdir(parents=True)
    (daemon.workspace / "tree" / "inner" / "a.txt").write_text(TEXT)
    with running(base):
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client() as person:
            waiting = await alice.move_file("tree", "other")
            assert waiting.status == "waiting"
            await person.approve(waiting.approval or "", approver=code, unseen=True)
            assert (daemon.workspace / "other" / "inner" / "a.txt").read_text() == TEXT
            assert not (daemon.workspace / "tree").exists()


async def test_an_empty_folder_is_no_dead_end(free: RunningDaemon) -> None:
    (free.workspace / "hollow" / "inner").mkdir(parents=True)
    with running(free.base):
        async with free.client("alice") as alice:
            with pytest.raises(RemoteError) as refused:
                await alice.delete_file("hollow")
            assert "delete_file removes one by one" in (refused.value.hint or "")
            assert (await alice.delete_file("hollow/inner")).status == "applied"
            assert (await alice.delete_file("hollow")).status == "applied"
            assert (await alice.move_file("src", "hollow")).status == "applied"
            assert (free.workspace / "hollow" / "c.txt").read_text() == TEXT
