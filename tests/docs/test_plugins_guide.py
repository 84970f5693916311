"""docs/plugins.md: its package, its policy and its tables are those that the daemon takes."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from orchestrator.clients.python import Replacement
from orchestrator.extensions.hookspecs import AppliedChange, Hooks
from orchestrator.ports.reviewers import ReviewRegion, ReviewReply, ReviewRequest
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.reviewer_servers import OPEN, follow
from tests.docs.documents import ROOT, blocks
from tests.extensions.packages import put

GUIDE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


class Plugged(RunningDaemon):
    """A daemon with a folder of packages on its path."""

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "PYTHONPATH": os.pathsep.join((os.getcwd(), str(self.base / "site")))}


@pytest.mark.anyio
@pytest.mark.parametrize(("late", "kept"), [("\n", True), ("bob\n", False)], ids=["blank", "not blank"])
async def test_the_guides_plugin_and_program_work_as_written(base: Path, late: str, kept: bool) -> None:
    plugins, project, reviewers = (block.text for block in blocks(GUIDE, "toml"))
    module, program = (block.text for block in blocks(GUIDE, "python"))
    points = tomllib.loads(project)["project"]["entry-points"]["orchestrator"]
    put(base / "site", "my_plugin", module, points=points)
    (base / "keeps.py").write_text(program)
    argv = json.dumps([sys.executable, "-I", str(base / "keeps.py")])
    reviewers = reviewers.replace('["python3", "/home/me/keeps.py"]', argv)
    daemon = Plugged(base)
    policy = plugins + reviewers.replace("[[route]]\n", '[[route]]\naccept = "auto"\n')
    (daemon.state_dir / "policy.toml").write_text(OPEN + policy)
    (daemon.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    assert daemon.start().get("ok") is True
    try:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            seen = await bob.read_file("a.txt")
            await alice.read_file("a.txt")
            await alice.edit_file("a.txt", [Replacement(search="two", replace="alice")])
            waits = await bob.edit_file("a.txt", [Replacement(search="two\n", replace=late)], base=seen.version_id)
            assert waits.status == "conflict"
            if kept:
                assert (await follow(person, "conflict_resolved"))[0]["choice"] == "current"
            else:
                assert (await follow(person, "review_rejected"))[0]["reason"] == "not mine to say"
            assert (daemon.workspace / "a.txt").read_text() == "one\nalice\nthree\n"
    finally:
        assert daemon.stop() == 0
    assert "['a.txt']" in daemon.log


def test_the_guide_names_every_hook_and_field() -> None:
    hooks = {name for name in vars(Hooks) if name.startswith("orchestrator_")}
    named = {f"`{name}(" for name in hooks}
    structs = (ReviewRequest, ReviewRegion, ReviewReply, AppliedChange)
    fields = {f"`{name}`" for struct in structs for name in struct.__struct_fields__} - {"`usage`", "`keys`"}
    assert {name for name in named | fields if name not in GUIDE} == set()
    assert msgspec.structs.fields(ReviewReply)[0].name == "verdict"
