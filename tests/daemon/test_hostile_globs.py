"""Globs and ignore files that a matcher which goes back to earlier choices would never be done with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

HOSTILE = "*a*a*a*a/*a*a*a*a/b"
FOLDER = f"{'a' * 200}/{'a' * 200}"
PATIENCE_S = 120
"""Only so that a daemon that hangs fails the test instead of stopping it."""


async def answers(files: FileAccess, glob: str) -> dict[str, Any]:
    """What each operation that takes globs says of one."""
    with anyio.fail_after(PATIENCE_S):
        return {
            "find_files": [entry.path for entry in (await files.find_files(glob)).entries],
            "list_files": [entry.path for entry in (await files.list_files(globs=[glob], recursive=True)).entries],
            "search_content": [hit.path for hit in (await files.search_content("x", globs=[glob])).hits],
            "changes_since": [change.path for change in (await files.changes_since("@0", globs=[glob])).changes],
            "rollback": await rolled_back(files, glob),
        }


async def rolled_back(files: FileAccess, glob: str) -> object:
    try:
        return [path.path for path in (await files.rollback(globs=[glob], preview=True)).paths]
    except RemoteError as error:
        return error.code


async def test_a_hostile_glob_is_answered(daemon: RunningDaemon) -> None:
    async with daemon.client("mallory") as mallory:
        await mallory.write_file(f"{FOLDER}/c", "x\n", mode="create")
        path = f"{FOLDER}/b"
        operations = ("find_files", "list_files", "search_content", "changes_since")
        nothing: dict[str, Any] = {**{operation: [] for operation in operations}, "rollback": "nothing_to_change"}
        assert await answers(mallory, HOSTILE) == nothing
        with pytest.raises(RemoteError) as refused:
            await answers(mallory, "[z-a]")
        assert refused.value.code == "invalid_parameter"
        assert await answers(mallory, "**/" * 300 + "b") == nothing
        await mallory.write_file(path, "x\n", mode="create")
        assert await answers(mallory, HOSTILE) == {key: [path] for key in nothing}


@pytest.mark.parametrize("globs", [["!*"], ["*.py", "!**", "!*.md"], ["*.{py"], ["{}"], ["*.py}"], ["{py}"]])
async def test_globs_that_name_nothing_are_refused(daemon: RunningDaemon, globs: list[str]) -> None:
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.search_content("x", globs=globs)
    assert refused.value.code == "invalid_parameter"
    assert refused.value.hint


async def test_globs_may_begin_with_the_absolute_path(daemon: RunningDaemon) -> None:
    root = daemon.workspace
    (root / "src").mkdir()
    for name in ("src/a.py", "src/{b}.py", "c.py"):
        (root / name).write_text("x\n")
    async with daemon.client("alice") as alice:
        for path in (".", "src"):
            globs = [f"{root}/src/*.py", f"!{root}/src/\\{{b\\}}.py"]
            assert [hit.path for hit in (await alice.search_content("x", path=path, globs=globs)).hits] == ["src/a.py"]
        assert (await alice.find_files(f"{root}/src/*.py")).total == 2
        with pytest.raises(RemoteError) as refused:
            await alice.list_files("src", globs=[f"{root}/*.py"])
    assert (refused.value.code, refused.value.hint) == ("invalid_parameter", "Send it with path='.'.")


async def test_a_hostile_lease_is_kept_at_a_restart(base: Path) -> None:
    with running(base) as daemon:
        async with daemon.client("mallory") as mallory:
            await mallory.write_file(f"{FOLDER}/c", "x\n", mode="create")
            lease = await mallory.reserve_paths([HOSTILE, "**/a/" * 190 + "b"])
            assert lease.status == "granted"
    with running(base) as daemon, anyio.fail_after(PATIENCE_S):
        async with daemon.client("bob") as bob:
            assert (await bob.write_file(f"{FOLDER}/c2", "x\n", mode="create")).warnings == ()
            (warning,) = (await bob.write_file(f"{FOLDER}/b", "x\n", mode="create")).warnings
            assert "reserved by mallory" in warning
            assert (await bob.reserve_paths([f"{FOLDER}/b"])).status == "clash"


async def test_a_start_meets_a_hostile_ignore_file(base: Path) -> None:
    """As it comes with a cloned repository. Rules over the budget are not used, and `status` says so."""
    work = base / "work"
    deep = work.joinpath(*["a"] * 100)
    deep.mkdir(parents=True)
    (deep / "kept").touch()
    (deep / "b").touch()
    (work / ".gitignore").write_text("**/a/" * 10 + "b\n" + "**/a/" * 10 + "c\n")
    (work / "many" / "b").mkdir(parents=True)
    (work / "many" / ".gitignore").write_text("".join(f"n{n}\n" for n in range(10_001)))
    (work / "many" / "n1").touch()
    (work / "large").mkdir()
    (work / "large" / ".gitignore").write_text("# as long as it is\n" * 60_000 + "x\n")
    (work / "large" / "x").touch()
    (work / "other" / "x").parent.mkdir()
    (work / "other" / "x").touch()
    (work / "other" / ".gitignore").write_text("x\n")
    with running(base) as daemon:
        async with daemon.client() as person:
            found = {entry.path for entry in (await person.find_files("*")).entries}
            assert {"many/n1", "large/x", f"{'a/' * 100}kept"} < found
            assert not {"other/x", f"{'a/' * 100}b"} & found
            notes = [note for note in (await person.status()).health.notes if "ignore file" in note]
            assert notes == [
                (
                    "ignore file large/.gitignore is not used, so what it names is tracked: "
                    "it is larger than 1,048,576 bytes. Shorten or split it"
                ),
                (
                    "ignore file many/.gitignore is not used, so what it names is tracked: "
                    "it holds 10,001 rules, of at most 10,000. Shorten or split it"
                ),
            ]
            (work / "many" / ".gitignore").write_text("n*\n")
            (work / "large" / ".gitignore").unlink()
            assert "many/n1" not in {entry.path for entry in (await person.find_files("*")).entries}
            assert not [note for note in (await person.status()).health.notes if "ignore file" in note]
