"""What apply_patch and edit_file refuse because it may not be what was meant, and long patches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

CART = '''\
import os
import sys


class Cart:
    def add(self, item):
        """Add one."""
        self.items.append(item)
        return self

    def clear(self):
        self.items = []
'''
LEFT_OUT = "# ... existing code ..."
ADD = f'def add(self, item):\n    """Add two."""\n    {LEFT_OUT}\n'


@pytest.fixture
def shop(base: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text('name = "open"\ndefault = "allow"\n')
    (daemon.workspace / "a.py").write_text(CART)
    (daemon.workspace / "notes.py").write_text(f"def f():\n    {LEFT_OUT}\n    return 1\n")
    daemon.start()
    yield daemon
    assert daemon.stop() == 0


async def refused(client: FileAccess, patch: str, path: str | None = "a.py") -> RemoteError:
    await client.read_file("a.py")
    with pytest.raises(RemoteError) as caught:
        await client.apply_patch(patch, path=path)
    return caught.value


@pytest.mark.parametrize("tag", ["diff", "patch", ""])
async def test_rows_of_a_diff_in_a_fence_are_no_file(shop: RunningDaemon, tag: str) -> None:
    async with shop.client("alice") as alice:
        error = await refused(alice, f"```{tag}\n-import os\n+import re\n import sys\n```")
        assert error.code == "patch_ambiguous"
        assert "without '@@'" in error.message
    assert (shop.workspace / "a.py").read_text() == CART


async def test_a_snippet_in_a_fence_is_not_the_file(shop: RunningDaemon) -> None:
    async with shop.client("alice") as alice:
        error = await refused(alice, "```python\n    def clear(self):\n        self.items = None\n```\n")
        assert error.code == "patch_ambiguous"
        assert "write_file(mode=truncate)" in (error.hint or "")
    assert (shop.workspace / "a.py").read_text() == CART


async def test_a_fence_is_measured_by_what_its_author_saw(shop: RunningDaemon) -> None:
    whole = CART.replace("import os\n", "")
    async with shop.client("alice") as alice, shop.client("bob") as bob:
        await alice.read_file("a.py")
        await bob.write_file("a.py", "".join(f"def more_{i}(): ...\n" for i in range(30)), mode="append")
        answer = await alice.apply_patch(f"a.py\n```\n{whole}```\n")
        assert answer.status == "applied"
    text = (shop.workspace / "a.py").read_text()
    assert text.startswith("import sys\n")
    assert "more_29" in text


async def test_a_fence_still_makes_a_new_file(shop: RunningDaemon) -> None:
    async with shop.client("alice") as alice:
        answer = await alice.apply_patch("n.py\n```python\nx = 1\n```\n")
        assert answer.status == "applied"
    assert (shop.workspace / "n.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(("patch", "hint"), [
    pytest.param(
        "*** Begin Patch\n*** Update File: a.py\n@@\n-import os\n+import re\n", "*** End Patch", id="begin patch"
    ),
    pytest.param("--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n-import os\n+impo", "whole", id="unified"),
])  # fmt: skip
async def test_a_patch_that_may_be_cut_off_is_refused(shop: RunningDaemon, patch: str, hint: str) -> None:
    async with shop.client("alice") as alice:
        error = await refused(alice, patch, None)
        assert error.code == "patch_invalid"
        assert "cut off" in error.message
        assert hint in (error.hint or "")
    assert (shop.workspace / "a.py").read_text() == CART


@pytest.mark.parametrize(("change", "parameter"), [
    pytest.param(Replacement(symbol="Cart.add", content=ADD), "content", id="symbol"),
    pytest.param(
        Replacement(search='        """Add one."""\n', replace=f"        {LEFT_OUT}\n"), "replace", id="search"
    ),
    pytest.param(
        Replacement(start=8, end=8, expect="        self.items.append(item)\n", replace=f"        {LEFT_OUT}\n"),
        "replace",
        id="lines",
    ),
])  # fmt: skip
async def test_an_edit_that_leaves_lines_out_is_refused(
    shop: RunningDaemon, change: Replacement, parameter: str
) -> None:
    async with shop.client("alice") as alice:
        await alice.read_file("a.py")
        with pytest.raises(RemoteError) as caught:
            await alice.edit_file("a.py", [Replacement(search="import os", replace="import re"), change])
        assert caught.value.code == "invalid_parameter"
        assert caught.value.details["parameter"] == parameter
        assert "(change 2)" in caught.value.message
        assert "Write out every line" in (caught.value.hint or "")
    assert (shop.workspace / "a.py").read_text() == CART


async def test_a_file_that_holds_such_a_line_may_keep_it(shop: RunningDaemon) -> None:
    async with shop.client("alice") as alice:
        await alice.read_file("notes.py")
        for change in (
            Replacement(symbol="f", content=f"def f():\n    {LEFT_OUT}\n    return 2\n"),
            Replacement(search=f"{LEFT_OUT}\n    return 2", replace=f"{LEFT_OUT}\n    return 3"),
        ):
            assert (await alice.edit_file("notes.py", [change])).status == "applied"
    assert (shop.workspace / "notes.py").read_text() == f"def f():\n    {LEFT_OUT}\n    return 3\n"


async def test_a_long_patch_applies_and_says_its_form_again(shop: RunningDaemon) -> None:
    added = "".join(f"+line {i}\n" for i in range(20_000))
    patch = f"*** Begin Patch\n*** Add File: long.txt\n{added}*** End Patch\n"
    async with shop.client("alice") as alice:
        for _ in range(2):
            answer = await alice.apply_patch(patch, request_id="once")
            assert answer.status == "applied"
    assert (shop.workspace / "long.txt").read_text() == added.replace("+line", "line")


async def test_a_patch_over_the_limits_is_refused_and_others_are_served(shop: RunningDaemon) -> None:
    patches = {
        "rows": "*** Begin Patch\n*** Update File: a.py\n@@\n" + "EOF\n" * 100_000,
        "files": "".join(f"--- a/f{i}\n+++ b/f{i}\n@@ -1 +1 @@\n-x\n+y\n" for i in range(1_001)),
        "bytes": "```\n" + "x" * (4 * 1024 * 1024) + "\n```\n",
    }
    async with shop.client("alice") as alice, shop.client("bob") as bob:
        for detail, patch in patches.items():
            async with anyio.create_task_group() as group:
                group.start_soon(bob.read_lines, "a.py")
                error = await refused(alice, patch)
            assert error.code == "patch_invalid"
            assert error.details[f"max_{detail}"] < error.details[detail]
            assert "several patches" in (error.hint or "")


async def test_a_fence_reports_nothing_of_what_is_not_shown(base: Path) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(
        'name = "veiled"\ndefault = "allow"\n\n'
        '[[rule]]\nname = "veil"\nagents = ["*"]\nactions = ["read"]\npaths = ["a.py"]\nverdict = "deny"\n'
    )
    (daemon.workspace / "a.py").write_text(CART)
    daemon.start()
    async with daemon.client("alice") as alice:
        version = (await alice.file_info("a.py")).version_id
        for guess in (CART, "x = 1\n"):
            with pytest.raises(RemoteError) as caught:
                await alice.apply_patch(f"a.py\n```\n{guess}```\n", base=version)
            assert caught.value.code == "denied"
    assert daemon.stop() == 0
