"""Which decisions are left to a worker, and that it decides the same from bytes alone."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import AllFacts, Command, Delete, Edit, Write
from orchestrator.core.decisions.costs import SLICE_BYTES, costly
from orchestrator.core.decisions.decision import Apply, Base, Facts, Held
from orchestrator.core.decisions.patches import Patch
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import Replacement

PATH = WorkspacePath("a.txt")
SMALL = "".join(f"line {n}\n" for n in range(100)).encode()
LARGE = "".join(f"line {n}\n" for n in range(20_000)).encode()
BORDER = b" " * (SLICE_BYTES - 3) + b"quoted" + b" " * 1000
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-line 0\n+line zero\n line 1\n"


MANY = tuple(Replacement(search=f"line {n}\n", replace="new\n") for n in range(1000))


def facts(data: bytes, *, base: bytes | None = None) -> dict[WorkspacePath, Facts]:
    held = Held(data, digest_of(data), 0o644, decode(data))
    against = base if base is not None else data
    contents = {digest_of(against): against}
    return {PATH: Facts(PATH, held, Seq(5), Base(Seq(4), digest_of(against)), contents=contents)}


def edit(search: str) -> Edit:
    return Edit(path=PATH, changes=(Replacement(search=search, replace="new"),))


def patch() -> Patch:
    (one,) = parse(PATCH, None).files
    return Patch.of(PATH, one)


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        pytest.param(edit("line 7\n"), facts(SMALL, base=SMALL + b"x"), False, id="small, stale"),
        pytest.param(edit("line 7\n"), facts(LARGE), False, id="large, quoted"),
        pytest.param(edit("line 7\nline 8\n"), facts(LARGE.replace(b"\n", b"\r\n")), False, id="large, CRLF, quoted"),
        pytest.param(edit("Line 7\n"), facts(LARGE), True, id="large, misquoted"),
        pytest.param(edit("quoted"), facts(BORDER), False, id="large, quoted where two slices of it meet"),
        pytest.param(edit("line 7\n"), facts(LARGE, base=LARGE + b"x"), True, id="large, stale"),
        pytest.param(Write(path=PATH, content="x", mode="truncate"), facts(LARGE), True, id="large, replaced"),
        pytest.param(Write(path=PATH, content="x", mode="append"), facts(LARGE), False, id="large, appended to"),
        pytest.param(Edit(path=PATH, changes=MANY), facts(LARGE), True, id="large, searched for many passages"),
        pytest.param(Write(path=PATH, content="x" * 600_000, mode="create"), facts(b""), True, id="much, created"),
        pytest.param(Delete(files=(PATH,)), facts(LARGE), False, id="large, deleted"),
        pytest.param(patch(), facts(LARGE), True, id="large, patched"),
        pytest.param(patch(), facts(SMALL), False, id="small, patched"),
        pytest.param(patch(), facts(b"x\n" * 5_000), True, id="few bytes in many lines, patched"),
        pytest.param(edit("line 7\n"), facts(SMALL, base=LARGE), True, id="small, from a large base"),
    ],
)
def test_what_may_take_long(command: Command, given: dict[WorkspacePath, Facts], expected: bool) -> None:
    assert costly(command, given) is expected


@pytest.mark.parametrize(
    ("command", "given"),
    [
        pytest.param(edit("line 7\n"), facts(LARGE, base=LARGE + b"x\n"), id="stale"),
        pytest.param(edit("line  7\n"), facts(LARGE), id="misquoted"),
        pytest.param(edit("nowhere\n"), facts(LARGE), id="found nowhere"),
        pytest.param(patch(), facts(LARGE), id="patched"),
        pytest.param(edit("Größe"), facts("Größe\n".encode("latin-1") * 20_000), id="latin-1, found too often"),
        pytest.param(
            edit("Größe 7\n"), facts("".join(f"Größe {n}\n" for n in range(9999)).encode("latin-1")), id="latin"
        ),
    ],
)
def test_the_same_is_decided_elsewhere(command: Command, given: dict[WorkspacePath, Facts]) -> None:
    there: tuple[Command, dict[WorkspacePath, Facts]] = pickle.loads(pickle.dumps((command, given)))
    assert _reported(*there) == _reported(command, given)


def _reported(command: Command, given: AllFacts) -> Any:
    """All that a decision says, or the refusal."""
    try:
        outcome = pickle.loads(pickle.dumps(command.decide(given)))
    except OrchestratorError as error:
        again = pickle.loads(pickle.dumps(error))
        return type(again), again.message, again.hint, again.details, again.quotes
    if not isinstance(outcome, Apply):
        return outcome
    contents = {digest: content.data for digest, content in outcome.contents.items()}
    return outcome.paths, contents
