"""What apply_patch says of the forms, and of files that are not where the patch looks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ @@\n-two\n+TWO\n"
BEGIN = "*** Begin Patch\n*** Update File: {path}\n@@\n-two\n+TWO\n*** End Patch\n"


@pytest.fixture
def open_to_all(base: Path) -> Iterator[RunningDaemon]:
    """Moves and removals need no person here."""
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text('name = "open"\ndefault = "allow"\n')
    (daemon.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    daemon.start()
    yield daemon
    assert daemon.stop() == 0


@pytest.mark.parametrize("patch", [
    pytest.param(PATCH, id="unified"),
    pytest.param(BEGIN.format(path="a.txt"), id="begin patch"),
    pytest.param("a.txt\n<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n", id="blocks"),
    pytest.param("a.txt\n```\none\nTWO\nthree\n```\n", id="whole"),
])  # fmt: skip
async def test_every_form_is_applied(open_to_all: RunningDaemon, patch: str) -> None:
    async with open_to_all.client("alice") as alice:
        await alice.read_file("a.txt")
        preview = await alice.apply_patch(patch, preview=True)
        assert (preview.status, preview.would_be) == ("preview", "applied")
        answer = await alice.apply_patch(patch)
        assert (answer.status, answer.rung) == ("applied", "current")
    assert (open_to_all.workspace / "a.txt").read_text() == "one\nTWO\nthree\n"


async def test_a_whole_file_needs_to_be_seen_whole(open_to_all: RunningDaemon) -> None:
    async with open_to_all.client("alice") as alice:
        await alice.read_file("a.txt", end=1)
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch("a.txt\n```\nTWO\n```\n")
        assert refused.value.code == "base_required"
    assert (open_to_all.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("patch", [PATCH, BEGIN.format(path="a.txt")], ids=["unified", "begin patch"])
async def test_a_patch_follows_a_file_that_was_moved(open_to_all: RunningDaemon, patch: str) -> None:
    async with open_to_all.client("alice") as alice, open_to_all.client("bob") as bob:
        read = await alice.read_file("a.txt")
        await bob.move_file("a.txt", "b.txt")
        last = await bob.move_file("b.txt", "d/c.txt")
        answer = await alice.apply_patch(patch)
        assert answer.status == "applied"
        assert [path.path for path in answer.paths] == ["d/c.txt"]
        assert "a.txt was moved to d/c.txt" in answer.warnings[0]
        assert last.status == "applied"
        with pytest.raises(RemoteError) as twice:
            await alice.apply_patch(patch, base=read.version_id)
        assert twice.value.code == "nothing_to_change"
    assert (open_to_all.workspace / "d/c.txt").read_text() == "one\nTWO\nthree\n"
    assert not (open_to_all.workspace / "a.txt").exists()


async def test_one_who_did_not_see_what_was_moved_must_quote_it_exactly(open_to_all: RunningDaemon) -> None:
    async with open_to_all.client("alice") as alice, open_to_all.client("bob") as bob:
        await bob.move_file("a.txt", "b.txt")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(PATCH.replace("-two", "-Two"))
        assert refused.value.code == "base_required"
        assert "b.txt" in refused.value.message
        answer = await alice.apply_patch(PATCH)
        assert (answer.status, answer.paths[0].path) == ("applied", "b.txt")
        assert "a.txt was moved to b.txt" in answer.warnings[0]


async def test_a_patch_of_several_names_the_file_that_was_moved(open_to_all: RunningDaemon) -> None:
    (open_to_all.workspace / "x.txt").write_text("x\n")
    async with open_to_all.client("alice") as alice:
        await alice.read_file("a.txt")
        await alice.read_file("x.txt")
        await alice.move_file("a.txt", "b.txt")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(PATCH + "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-x\n+X\n")
        assert refused.value.code == "not_found"
        assert "moved to b.txt" in refused.value.message
    assert (open_to_all.workspace / "x.txt").read_text() == "x\n"


async def test_a_removed_file_is_not_found(open_to_all: RunningDaemon) -> None:
    async with open_to_all.client("alice") as alice:
        await alice.read_file("a.txt")
        await alice.delete_file("a.txt")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(PATCH)
        assert refused.value.code == "not_found"


async def test_a_whole_file_is_deleted_by_begin_patch_only_as_it_was_seen(open_to_all: RunningDaemon) -> None:
    patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"
    async with open_to_all.client("alice") as alice, open_to_all.client("bob") as bob:
        await alice.read_file("a.txt")
        await bob.write_file("a.txt", "four\n", mode="append")
        with pytest.raises(RemoteError) as stale:
            await alice.apply_patch(patch)
        assert stale.value.code == "stale_base"
        await alice.read_file("a.txt")
        assert (await alice.apply_patch(patch)).status == "applied"
    assert not (open_to_all.workspace / "a.txt").exists()


@pytest.mark.parametrize(("path", "code"), [
    pytest.param("../a.txt", "path_not_canonical", id="up"),
    pytest.param("/etc/hosts", "path_absolute", id="absolute"),
    pytest.param("sub/../../a.txt", "path_not_canonical", id="hidden"),
])  # fmt: skip
async def test_paths_outside_are_refused_in_every_form(open_to_all: RunningDaemon, path: str, code: str) -> None:
    async with open_to_all.client("alice") as alice:
        for patch in (
            f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n" if not path.startswith("/") else
            f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-a\n+b\n",
            BEGIN.format(path=path),
            f"*** Begin Patch\n*** Add File: {path}\n+a\n*** End Patch\n",
            f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n",
            f"*** Begin Patch\n*** Update File: a.txt\n*** Move to: {path}\n*** End Patch\n",
            f"{path}\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
            f"{path}\n```\na\n```\n",
        ):  # fmt: skip
            with pytest.raises(RemoteError) as refused:
                await alice.apply_patch(patch)
            assert refused.value.code == code, patch
    assert (open_to_all.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_the_workspace_s_own_root_may_precede_a_path(open_to_all: RunningDaemon) -> None:
    async with open_to_all.client("alice") as alice:
        await alice.read_file("a.txt")
        answer = await alice.apply_patch(BEGIN.format(path=open_to_all.workspace / "a.txt"))
        assert [path.path for path in answer.paths] == ["a.txt"]


async def test_a_binary_file_has_no_lines(open_to_all: RunningDaemon) -> None:
    (open_to_all.workspace / "a.txt").write_bytes(b"one\0two\n")
    async with open_to_all.client("alice") as alice:
        version = (await alice.file_info("a.txt")).version_id
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch(PATCH, base=version)
        assert refused.value.code == "binary_file"


async def test_path_and_patch_must_agree(open_to_all: RunningDaemon) -> None:
    async with open_to_all.client("alice") as alice:
        for patch in (PATCH, BEGIN.format(path="a.txt"), "a.txt\n```\na\n```\n"):
            with pytest.raises(RemoteError) as refused:
                await alice.apply_patch(patch, path="b.txt")
            assert refused.value.code == "invalid_parameter"


async def test_a_file_added_without_a_line_is_no_replacement(open_to_all: RunningDaemon) -> None:
    async with open_to_all.client("alice") as alice:
        await alice.read_file("a.txt")
        with pytest.raises(RemoteError) as refused:
            await alice.apply_patch("old mode 100644\n>>>>>>> b\n*** Add File: a.txt\n")
        assert refused.value.code == "patch_invalid"
    assert (open_to_all.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
