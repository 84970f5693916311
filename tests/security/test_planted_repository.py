"""A directory that git takes for a repository, made name by name: the last name asks, in whatever order."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.security.hostile_workspace import HostileWorkspace

HEAD, CONFIG = "ref: refs/heads/main\n", "[core]\n\tfsmonitor = touch ran; false\n"


def written(hostile: HostileWorkspace, directory: str, name: str) -> dict[str, Any]:
    path = f"{directory}/{name}" if name in ("HEAD", "commondir") else f"{directory}/{name}/keep"
    return hostile.agent.done("write_file", path=path, content=HEAD, mode="create")


def appended(hostile: HostileWorkspace, directory: str, name: str) -> dict[str, Any]:
    path = f"{directory}/{name}" if name in ("HEAD", "commondir") else f"{directory}/{name}/keep"
    return hostile.agent.done("write_file", path=path, content=HEAD, mode="append")


def patched(hostile: HostileWorkspace, directory: str, name: str) -> dict[str, Any]:
    path = f"{directory}/{name}" if name in ("HEAD", "commondir") else f"{directory}/{name}/keep"
    return hostile.agent.done("apply_patch", patch=f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{HEAD}")


def directory_made(hostile: HostileWorkspace, directory: str, name: str) -> dict[str, Any]:
    if name in ("HEAD", "commondir"):
        return written(hostile, directory, name)
    return hostile.agent.done("create_directory", path=f"{directory}/{name}")


@pytest.mark.parametrize("make", [written, appended, patched, directory_made])
@pytest.mark.parametrize(
    "names",
    [*itertools.permutations(("HEAD", "objects", "refs")), ("commondir", "HEAD"), ("HEAD", "commondir")],
    ids="-".join,
)
def test_the_last_name_asks(
    hostile: HostileWorkspace, make: Callable[[HostileWorkspace, str, str], dict[str, Any]], names: tuple[str, ...]
) -> None:
    directory = f"planted-{make.__name__}-{'-'.join(names)}"
    *first, last = names
    for name in first:
        assert make(hostile, directory, name)["status"] == "applied", name
    answer = make(hostile, directory, last)
    assert answer["status"] == "waiting", answer
    assert "repository" in answer["message"]
    hostile.person.done("deny", approval=answer["approval"], approver=hostile.approver)
    config = hostile.agent.done("write_file", path=f"{directory}/config", content=CONFIG, mode="create", preview=True)
    assert config["would_be"] == "waiting", "a git configuration, also before the rest is there"
    ran = subprocess.run(["git", "status"], cwd=hostile.work / directory, capture_output=True, check=False)
    assert ran.returncode, "git sees no repository there"


def test_one_patch_that_brings_all_of_it(hostile: HostileWorkspace) -> None:
    names = ("all/HEAD", "all/objects/a", "all/refs/b", "all/x.txt")
    patch = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n" for name in names)
    with hostile.untouched(refusals=0):
        assert hostile.agent.done("apply_patch", patch=patch)["status"] == "waiting"


def test_what_is_moved_there(hostile: HostileWorkspace) -> None:
    """Policy may let an agent move things; what the move would complete is told beside its own rule."""
    (hostile.work / "moved" / "objects").mkdir(parents=True)
    (hostile.work / "moved" / "refs").mkdir()
    (hostile.work / "head.txt").write_text(HEAD)
    (hostile.work / "c.txt").write_text(CONFIG)
    for source, destination, says in (
        ("head.txt", "moved/HEAD", "takes moved for a repository"),
        ("c.txt", "elsewhere/config", "is a git configuration"),
    ):
        waiting = hostile.agent.done("move_file", source=source, destination=destination)
        assert says in waiting["message"], waiting
        hostile.person.done("deny", approval=waiting["approval"], approver=hostile.approver)


@pytest.mark.parametrize(
    "name", ["config", "hooks/post-checkout", "info/attributes", "CONFIG", "Hooks/x", "packed-refs"]
)
def test_what_git_reads_in_a_repository_asks(hostile: HostileWorkspace, name: str) -> None:
    bare = hostile.work / "there.git"
    for part in ("objects", "refs"):
        (bare / part).mkdir(parents=True, exist_ok=True)
    (bare / "HEAD").write_text(HEAD)
    answer = hostile.agent.done("write_file", path=f"there.git/{name}", content="x\n", mode="create", preview=True)
    assert answer["would_be"] == "waiting"


@pytest.mark.parametrize(
    "path", ["app/objects/a.py", "app/refs/b.py", "app/HEAD.md", "app/hooks/use.ts", "app/config", "app/info/x.md"]
)
def test_ordinary_names_are_written(hostile: HostileWorkspace, path: str) -> None:
    assert hostile.agent.done("write_file", path=path, content="[default]\n", mode="create")["status"] == "applied"


def test_two_at_once_do_not_complete_it_between_them(hostile: HostileWorkspace) -> None:
    """Each would be allowed alone; the one behind the other asks, whichever that is."""
    with hostile.line(agent="bob") as other:
        for at in range(12):
            directory = f"raced{at}"
            assert written(hostile, directory, "objects")["status"] == "applied"
            for line, name in ((hostile.agent, "HEAD"), (other, "refs/x")):
                params = {"path": f"{directory}/{name}", "content": HEAD, "mode": "create"}
                call = {"jsonrpc": "2.0", "id": 0, "method": "write_file", "params": params}
                line.send(json.dumps(call).encode())
            reported = sorted(line.receive().result["status"] for line in (hostile.agent, other))
            assert reported == ["applied", "waiting"], directory


def test_an_approval_given_before_others_made_it_a_repository_asks_again(hostile: HostileWorkspace) -> None:
    """The person said yes to another rule's question, and was not told of a repository."""
    made = hostile.agent.done("write_file", path="asked/refs/Makefile", content="x\n", mode="create")
    assert "repository" not in made["message"]
    assert made["status"] == "waiting"
    for name in ("HEAD", "objects"):
        assert written(hostile, "asked", name)["status"] == "applied"
    again = hostile.person.done("approve", approval=made["approval"], approver=hostile.approver, unseen=True)
    assert again["status"] == "waiting", again
    assert not (hostile.work / "asked" / "refs").exists()
    shown = hostile.person.done("approvals_show", approval=again["approval"])
    assert "takes asked for a repository" in shown["rule"]
    assert (
        hostile.person.done("approve", approval=again["approval"], approver=hostile.approver, unseen=True)["status"]
        == "applied"
    )
    assert (hostile.work / "asked" / "refs" / "Makefile").exists()


def test_a_granted_change_and_another_do_not_complete_it_between_them(hostile: HostileWorkspace) -> None:
    """Neither was asked about a repository; whichever comes second is."""
    for at in range(12):
        directory = f"granted{at}"
        assert written(hostile, directory, "objects")["status"] == "applied"
        made = hostile.agent.done("write_file", path=f"{directory}/refs/Makefile", content="x\n", mode="create")
        grant = {"approval": made["approval"], "approver": hostile.approver, "unseen": True}
        head = {"path": f"{directory}/HEAD", "content": HEAD, "mode": "create"}
        for line, method, params in ((hostile.person, "approve", grant), (hostile.agent, "write_file", head)):
            line.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}).encode())
        reported = sorted(line.receive().result["status"] for line in (hostile.person, hostile.agent))
        assert reported == ["applied", "waiting"], directory
