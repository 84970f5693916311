"""The wire form of a refusal, whose size does not grow with what it is about."""

from __future__ import annotations

import msgspec

from orchestrator.api.framing import refusal
from orchestrator.core.errors import CallerError


def test_of_long_lists_the_first_members_go_out_and_the_rest_is_counted() -> None:
    files = [{"path": f"{'d' * 500}/{number}"} for number in range(1_000)]
    said = refusal(CallerError("no " * 100_000, details={"path": "a", "change": 0, "files": files, "none": ()}))
    shown = said.details["files"]
    assert shown == files[: len(shown)]
    assert 0 < len(shown) == 1_000 - said.details["files_left_out"]
    assert (said.details["path"], said.details["change"], "none" in said.details) == ("a", 0, False)
    assert len(msgspec.json.encode(said)) < 50_000
    short = refusal(CallerError("no", details={"lines": [1, 2]}))
    assert (short.message, short.details) == ("no", {"lines": [1, 2]})
