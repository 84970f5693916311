"""A command that waits for a yes, on the command line."""

from __future__ import annotations

from tests.end_to_end.workspace_factory import Place


def test_its_next_step_is_a_persons(place: Place) -> None:
    """Not a call that only agents make."""
    place.up()
    ran = place.cli("command", "run", "--", "touch", "made")
    assert "`orchestrator approvals show @" in ran.err
    assert "await_change" not in ran.err
    assert not (place.workspace / "made").exists()
    assert "run_command  .  touch made" in place.cli("approvals").out
    place.cli("command", "run", "--", "touch", "a b", "x" * 500)
    assert "touch 'a b' …" in place.cli("approvals").out.splitlines()[1]
