"""A tree is never rebuilt into the workspace or the state directory."""

from __future__ import annotations

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon


@pytest.mark.parametrize("into", ["state/out", "linked/out", "work/out"])
def test_no_tree_is_rebuilt_into_either(daemon: RunningDaemon, into: str) -> None:
    (daemon.base / "linked").symlink_to(daemon.state_dir)
    more = ("--to", "current", "--into", str(daemon.base / into))
    code, reported = command(daemon, "replay", *more, cwd=daemon.base)
    assert (code, reported["code"]) == (1, "output_path_refused"), reported
    assert not (daemon.base / into).exists()
