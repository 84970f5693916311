"""`orchestrator commit` beside real git: a commit holds what one task changed, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, Replacement
from tests.end_to_end.workspace_factory import Place, Ran

DONE, REFUSED, USAGE = range(3)
LINES = [f"line {number}" for number in range(1, 21)]


class Repository:
    """A git repository whose root is the workspace, or a folder above it."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place, self.folder = place, folder
        place.env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        self.git("init", "-q", "-b", "main")
        for name, value in (("user.name", "me"), ("user.email", "me@example.org")):
            self.git("config", name, value)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ("git", *arguments), cwd=self.folder, env=self._place.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit_all(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "before")

    def shown(self, path: str, commit: str = "HEAD") -> str:
        return self.git("show", f"{commit}:{path}")

    def changed(self, commit: str = "HEAD") -> list[str]:
        return self.git("show", "--format=", "--name-status", "--no-renames", commit).splitlines()


@pytest.fixture
def repository(place: Place) -> Repository:
    """With one commit of three files, and the daemon running."""
    made = Repository(place, place.workspace)
    (place.workspace / "shared.txt").write_text("\n".join(LINES) + "\n")
    (place.workspace / "other.txt").write_text("other\n")
    (place.workspace / "old.txt").write_text("old\n")
    made.commit_all()
    place.up()
    return made


async def edited(place: Place, name: str, title: str, old: str, new: str) -> str:
    """A task of an agent with one edit of shared.txt; the task."""
    async with FileAccess.connect(socket=str(place.location["socket"]), agent=name) as files:
        task = await files.begin_task(title)
        await files.read_file("shared.txt")
        answer = await files.edit_file("shared.txt", [Replacement(search=old, replace=new)])
        assert answer.status == "applied"
        await files.end_task(task.task, "done")
        return task.task


def committed(place: Place, *arguments: str) -> Ran:
    return place.cli("commit", *arguments, "--json")


@pytest.mark.anyio
async def test_each_task_is_a_commit_of_its_own_changes(place: Place, repository: Repository) -> None:
    one = await edited(place, "alice", "Change the first line", "line 1\n", "first\n")
    other = await edited(place, "bob", "Change the last line", "line 20\n", "last\n")
    on_disk = (place.workspace / "shared.txt").read_text()
    for task in (other, one):  # the later one first: it does not take the earlier one along
        assert committed(place, task).code == DONE
    assert repository.shown("shared.txt", "HEAD~1") == "\n".join([*LINES[:-1], "last"]) + "\n"
    assert repository.shown("shared.txt") == on_disk == (place.workspace / "shared.txt").read_text()
    assert repository.git("status", "--porcelain") == ""
    said = repository.git("log", "-1", "--format=%an <%ae>%n%cn%n%B").splitlines()
    assert said[:4] == ["alice <alice@agents.invalid>", "me", "Change the first line", ""]
    names = [line.partition(":")[0] for line in said[4:] if line]
    assert names == ["Agent", "Session", "Task", "Version"]
    assert f"Task: {one}" in said
    assert committed(place, one).json["code"] == "nothing_to_commit"


@pytest.mark.anyio
async def test_work_that_cannot_be_told_apart_is_left_out(place: Place, repository: Repository) -> None:
    await edited(place, "alice", "Name it", "line 5\n", "five\n")
    task = await edited(place, "bob", "Name it better", "five\n", "number five\n")
    before = repository.git("rev-parse", "HEAD")
    refused = committed(place, task)
    assert refused.json["code"] == "nothing_to_commit"
    assert "shared.txt: its changes build on work of others" in refused.json["message"]
    assert repository.git("rev-parse", "HEAD") == before


@pytest.mark.anyio
async def test_files_that_come_go_and_move(place: Place, repository: Repository) -> None:
    (place.workspace / ".gitignore").write_text("*.log\n")
    repository.commit_all()
    async with FileAccess.connect(socket=str(place.location["socket"]), agent="alice") as files:
        task = (await files.begin_task("Move things")).task
        assert (await files.write_file("new/deep.txt", "new\n", mode="create")).status == "applied"
        assert (await files.write_file("out.log", "log\n", mode="create")).status == "applied"
        assert (await files.write_file("draft.txt", "a draft\n", mode="create")).status == "applied"
        assert (await files.move_file("draft.txt", "kept.txt")).status == "applied"
        assert (await files.write_file("passing.txt", "x\n", mode="create")).status == "applied"
        assert (await files.delete_file("passing.txt")).status == "applied"
    said = committed(place, task)
    assert said.json["files"] == ["kept.txt", "new/deep.txt"]
    assert [(item["path"], item["reason"]) for item in said.json["left_out"]] == [("out.log", "git ignores it")]
    assert repository.changed() == ["A\tkept.txt", "A\tnew/deep.txt"]
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.anyio
async def test_what_a_person_staged_stays_staged(place: Place, repository: Repository) -> None:
    task = await edited(place, "alice", "First", "line 1\n", "first\n")
    (place.workspace / "other.txt").write_text("mine\n")
    repository.git("add", "other.txt", "shared.txt")
    (place.workspace / "old.txt").write_text("not staged\n")
    said = committed(place, task)
    assert said.code == DONE
    assert said.json["warnings"] == ["shared.txt is staged: the index keeps what you staged"]
    assert repository.changed() == ["M\tshared.txt"]
    assert repository.git("diff", "--cached", "--name-only").split() == ["other.txt"]
    assert repository.git("diff", "--name-only").split() == ["old.txt"]


@pytest.mark.anyio
async def test_a_dry_run_and_a_session(place: Place, repository: Repository) -> None:
    async with FileAccess.connect(socket=str(place.location["socket"]), agent="alice") as files:
        await files.read_file("old.txt")
        await files.edit_file("old.txt", [Replacement(search="old", replace="new")])
        session = files.session
    before = repository.git("rev-parse", "HEAD")
    dry = committed(place, session, "--dry-run", "--message", "Say  it\nanew")
    assert (dry.code, dry.json["commit"], dry.json["files"]) == (DONE, None, ["old.txt"])
    assert repository.git("rev-parse", "HEAD") == before
    done = committed(place, session)
    assert repository.git("rev-parse", "HEAD").strip() == done.json["commit"]
    assert repository.git("log", "-1", "--format=%s") == "Changes by alice\n"
    assert dry.json["message"].startswith("Say it anew\n\nAgent: alice\n")


@pytest.mark.anyio
async def test_a_workspace_below_the_repository_without_a_commit(place: Place) -> None:
    repository = Repository(place, place.base)
    (place.workspace / "shared.txt").write_text("line 1\n")
    place.up()
    script = "run: [it]\n"
    async with FileAccess.connect(socket=str(place.location["socket"]), agent="alice") as files:
        task = (await files.begin_task("Begin")).task
        assert (await files.write_file("a file [1].txt", script, mode="create")).status == "applied"
        (place.workspace / "a file [1].txt").chmod(0o755)
    assert committed(place, task).code == DONE
    assert repository.git("ls-tree", "-r", "HEAD").split("\t")[0].startswith("100755 blob ")
    assert repository.shown("work/a file [1].txt") == script


def test_what_is_refused(place: Place) -> None:
    place.up()
    assert place.cli("commit").code == USAGE
    assert committed(place, "@99").json["code"] == "version_unknown"
    unknown = committed(place, "no-such-session")
    assert (unknown.code, unknown.json["code"]) == (REFUSED, "nothing_to_commit")


@pytest.mark.anyio
async def test_no_repository_and_an_unfinished_merge(place: Place) -> None:
    (place.workspace / "shared.txt").write_text("line 1\n")
    place.up()
    task = await edited(place, "alice", "First", "line 1\n", "first\n")
    assert committed(place, task).json["code"] == "git_repository_missing"
    repository = Repository(place, place.workspace)
    repository.commit_all()
    (place.workspace / ".git/MERGE_HEAD").write_text(repository.git("rev-parse", "HEAD"))
    busy = committed(place, task)
    assert (busy.code, busy.json["code"]) == (REFUSED, "git_busy")


@pytest.mark.anyio
async def test_contents_that_git_converts(place: Place, repository: Repository) -> None:
    (place.workspace / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (place.workspace / "shared.txt").write_bytes("".join(f"{line}\r\n" for line in LINES).encode())
    repository.commit_all()
    task = await edited(place, "alice", "First", "line 1\n", "first\n")
    assert committed(place, task).code == DONE
    assert repository.shown("shared.txt") == "\n".join(["first", *LINES[1:]]) + "\n"
    assert repository.git("status", "--porcelain") == ""
