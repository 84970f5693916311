"""Merges through the real daemon: two agents, stale changes, and the report of what was merged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, Replacement
from orchestrator.clients.render import rendered
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.reviewer_servers import follow, one

pytestmark = pytest.mark.anyio

HEAD = 'name = "p"\ndefault = "allow"\n'
ALL = HEAD
NO_IMPORTS = HEAD + "\n[edits]\nmerge_rules = ['list_items']\n"

CAREFUL = HEAD + '\n[edits]\nlowest_rung = "shifted"\n'

IMPORTS = "import os\n\nprint(os)\n"
BLOCK = "def one():\n    a = 1\n    b = 2\n    return a + b\n"
MOVING = f"{BLOCK}\n{''.join(f'x{n} = {n}' + chr(10) for n in range(9))}"
PIECE = "One: open the transport.\nStop.\nTwo: go in.\nThree: close it.\n"
"""Its second line stands elsewhere too, and no symbol tells which is meant."""
TELLING = f"{PIECE}\n{''.join(f'{n} times' + chr(10) for n in range(9))}Stop.\n"


@pytest.fixture
def text() -> str:
    """The policy; a test says which by its parameters."""
    return ALL


@pytest.fixture
def ground(base: Path, text: str) -> Iterator[RunningDaemon]:
    """A daemon under that policy, with the three files."""
    for folder in ("state", "work"):
        (base / folder).mkdir(mode=0o700)
    (base / "state" / "policy.toml").write_text(text)
    (base / "work" / "a.py").write_text(IMPORTS)
    (base / "work" / "b.py").write_text(MOVING)
    (base / "work" / "c.txt").write_text(TELLING)
    with running(base) as daemon:
        yield daemon


async def both_import(ground: RunningDaemon, *, preview: bool = False) -> ChangeAnswer:
    """Two agents read the same version; the second one's patch is stale."""
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("a.py")
        await alice.read_file("a.py")
        await alice.edit_file("a.py", [Replacement(search="import os\n", replace="import os\nimport re\n")])
        stale = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,4 @@\n import os\n+import sys\n \n print(os)\n"
        return await bob.apply_patch(stale, base=seen.version_id, preview=preview)


async def test_a_stale_patch_is_merged_and_the_answer_says_why(ground: RunningDaemon) -> None:
    answer = await both_import(ground)
    assert (answer.status, answer.rung) == ("applied", "merged")
    assert (ground.workspace / "a.py").read_text() == "import os\nimport re\nimport sys\n\nprint(os)\n"
    (place,) = answer.merge
    assert (place.path, place.rule, place.lines) == ("a.py", "imports", (2, 3))
    assert (place.base, place.current, place.proposed) == ((2, 1), (2, 2), (2, 2))
    assert "only added imports" in place.why
    assert "merged by rule: imports" in answer.message
    assert any("a.py:2-3 imports" in line for line in rendered(answer))
    async with ground.client() as person:
        page = await person.journal_query(kind="change_applied")
        assert page.entries[0].event["fit"]["merge"][0]["rule"] == "imports"


async def test_a_preview_shows_the_merge(ground: RunningDaemon) -> None:
    answer = await both_import(ground, preview=True)
    assert (answer.status, answer.would_be) == ("preview", "applied")
    assert [place.rule for place in answer.merge] == ["imports"]
    assert "sys" not in (ground.workspace / "a.py").read_text()


@pytest.mark.parametrize("text", [NO_IMPORTS])
async def test_where_policy_does_not_let_it_imports_conflict(ground: RunningDaemon) -> None:
    answer = await both_import(ground)
    assert answer.status == "conflict"
    assert (ground.workspace / "a.py").read_text() == "import os\nimport re\n\nprint(os)\n"


async def test_an_edit_goes_where_its_symbol_was_moved(ground: RunningDaemon) -> None:
    rest = MOVING.removeprefix(f"{BLOCK}\n")
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("b.py")
        await alice.read_file("b.py")
        await alice.write_file("b.py", f"{rest}\n\n{BLOCK}", mode="truncate")
        answer = await bob.edit_file("b.py", [Replacement(search="b = 2", replace="b = 3")], base=seen.version_id)
    assert (answer.status, answer.rung) == ("applied", "anchored")
    assert (ground.workspace / "b.py").read_text() == f"{rest}\n\n{BLOCK.replace('b = 2', 'b = 3')}"


async def test_an_edit_of_moved_lines_that_occur_twice_is_a_conflict(ground: RunningDaemon) -> None:
    rest = TELLING.removeprefix(f"{PIECE}\n")
    changed = Replacement(search="transport.\nStop.\n", replace="transport.\nKnock.\n")
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("c.txt")
        await alice.read_file("c.txt")
        await alice.write_file("c.txt", f"{rest}\n{PIECE}", mode="truncate")
        answer = await bob.edit_file("c.txt", [changed], base=seen.version_id)
    assert answer.status == "conflict"
    assert (ground.workspace / "c.txt").read_text() == f"{rest}\n{PIECE}"


@pytest.mark.parametrize("text", [CAREFUL])
async def test_what_waits_says_how_it_fits_and_so_does_what_was_granted(ground: RunningDaemon) -> None:
    code = await ground.make_approver()
    waits = await both_import(ground)
    assert (waits.status, waits.rung) == ("waiting", "merged")
    async with ground.client() as person:
        done = await person.approve(waits.approval or "", approver=code, unseen=True)
    assert (done.status, done.rung) == ("applied", "merged")
    assert [place.rule for place in done.merge] == ["imports"]
    assert done.merge == waits.merge


async def test_two_functions_added_at_one_place_both_stay(ground: RunningDaemon) -> None:
    ours, theirs = "\n\ndef two():\n    return 2\n", "\n\ndef three():\n    return 3\n"
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("b.py")
        await alice.read_file("b.py")
        await alice.edit_file("b.py", [Replacement(search="    return a + b\n", replace=f"    return a + b\n{ours}")])
        added = Replacement(search="    return a + b\n", replace=f"    return a + b\n{theirs}")
        answer = await bob.edit_file("b.py", [added], base=seen.version_id)
    assert (answer.status, answer.rung) == ("applied", "merged")
    assert [place.rule for place in answer.merge] == ["additions"]
    text = (ground.workspace / "b.py").read_text()
    assert [text.count(piece.strip()) for piece in (BLOCK, ours, theirs)] == [1, 1, 1]
    assert len(text) == len(MOVING) + len(ours) + len(theirs)


async def test_one_name_added_twice_waits(ground: RunningDaemon) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("b.py")
        await alice.read_file("b.py")
        for agent, number in ((alice, 1), (bob, 2)):
            added = f"    return a + b\n\n\ndef two():\n    return {number}\n"
            change = Replacement(search="    return a + b\n", replace=added)
            answer = await agent.edit_file("b.py", [change], base=seen.version_id)
    assert answer.status == "conflict"
    assert "return 2" not in (ground.workspace / "b.py").read_text()


async def test_a_plain_merge_is_reported_too(ground: RunningDaemon) -> None:
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("b.py")
        await alice.read_file("b.py")
        await alice.edit_file("b.py", [Replacement(search="x8 = 8", replace="x8 = 80")])
        answer = await bob.write_file(
            "b.py", MOVING.replace("x1 = 1", "x1 = 10"), mode="truncate", base=seen.version_id
        )
    assert answer.rung == "merged"
    assert [(place.rule, place.lines) for place in answer.merge] == [("clean", (7, 7))]


async def test_an_undo_uses_no_merge_rule(ground: RunningDaemon) -> None:
    """What a revert takes back touches what came later: that stays with a person, as git has it."""
    async with ground.client("alice") as alice:
        await alice.read_file("a.py")
        first = await alice.edit_file("a.py", [Replacement(search="import os\n", replace="import os\nimport re\n")])
        await alice.edit_file("a.py", [Replacement(search="import re\n", replace="import re\nimport sys\n")])
        answer = await alice.revert(first.change or "")
    assert answer.status == "conflict"


async def meeting(ground: RunningDaemon, path: str, was: str, by_alice: str, by_bob: str) -> ChangeAnswer:
    """Two agents read the same text; one writes hers, then his whole text is stale."""
    (ground.workspace / path).write_text(was)
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file(path)
        await alice.read_file(path)
        await alice.write_file(path, by_alice, mode="truncate")
        return await bob.write_file(path, by_bob, mode="truncate", base=seen.version_id)


EQUAL = "  - name: a\n    image: x\n"
LOAD = "def load():\n    return 1\n\n\ndef main():\n    load()\n"


@pytest.mark.parametrize(
    ("path", "was", "by_alice", "by_bob"),
    [
        pytest.param(
            "s.py",
            "import z\nfrom secrets_cfg import p, s\n\nx=1\n",
            "import z\n\nx=1\n",
            "import z\nfrom secrets_cfg import p, s, r\n\nx=1\n",
            id="an import removed, and made longer",
        ),
        pytest.param(
            "s.py",
            'T = """\nimport a\nimport b\n"""\nz = 1\n',
            'T = """\nimport a\nimport b\nimport c\n"""\nz = 1\n',
            'T = """\nimport a\nimport b\nimport d\n"""\nz = 1\n',
            id="imports in a string",
        ),
        pytest.param(
            "s.py", "X = 1\nY = 2\n", "Y = 2\n", "X = 1\nY = X + 2\n", id="a constant removed, and used next to it"
        ),
        pytest.param(
            "s.py",
            LOAD,
            LOAD.replace("load", "read"),
            f"{LOAD}\n\ndef other():\n    load()\n",
            id="a function renamed, and used in a new one",
        ),
        pytest.param(
            "s.yml", "a: &x 1\nb: 2\n", "a: &y 1\nb: 2\n", "a: &x 1\nb: *x\n", id="an anchor renamed, and used"
        ),
        pytest.param(
            "s.yml",
            "steps:\n  - uses: checkout\n  - uses: setup\n",
            "steps:\n  - uses: checkout\n  - run: lint\n  - uses: setup\n",
            "steps:\n  - uses: checkout\n    with: x\n  - uses: setup\n",
            id="an item added, and a key of the item above",
        ),
        pytest.param(
            "s.yml",
            f"items:\n{EQUAL}{EQUAL}  - name: b\n",
            f"items:\n{EQUAL}  - name: b\n",
            f"items:\n{EQUAL}  - name: a\n  - name: b\n",
            id="one of two equal items removed, and a line of the other",
        ),
    ],
)
async def test_what_does_not_go_together_waits(
    ground: RunningDaemon, path: str, was: str, by_alice: str, by_bob: str
) -> None:
    answer = await meeting(ground, path, was, by_alice, by_bob)
    assert answer.status == "conflict"
    assert (ground.workspace / path).read_text() == by_alice


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param("s.py", "from a import {}\n", id="Python"),
        pytest.param("s.ts", 'import {{ {} }} from "x";\n', id="TS"),
    ],
)
async def test_names_added_to_one_import_become_one_line(ground: RunningDaemon, path: str, line: str) -> None:
    answer = await meeting(ground, path, line.format("p"), line.format("p, q"), line.format("p, r"))
    assert (answer.status, answer.rung) == ("applied", "merged")
    assert [place.rule for place in answer.merge] == ["imports"]
    assert (ground.workspace / path).read_text() == line.format("p, q, r")


COPIED = "h\nx\na\nb\n--\nx\na\nb\nt\n"


async def copied(ground: RunningDaemon, bob: FileAccess) -> ChangeAnswer:
    """One agent copies a passage above itself; the other changes a line of what he read."""
    (ground.workspace / "e.txt").write_text("h\nx\na\nb\nt\n")
    async with ground.client("alice") as alice:
        await bob.read_file("e.txt")
        await alice.read_file("e.txt")
        await alice.edit_file("e.txt", [Replacement(search="h\n", replace="h\nx\na\nb\n--\n")])
    return await bob.edit_file("e.txt", [Replacement(start=3, end=3, expect="a", replace="A")])


async def test_a_line_that_occurs_twice_by_now_is_not_guessed(ground: RunningDaemon) -> None:
    async with ground.client("bob") as bob:
        answer = await copied(ground, bob)
        assert answer.status == "conflict"
        assert "there are two equal passages, and it is not certain which one is meant" in answer.message
        assert (ground.workspace / "e.txt").read_text() == COPIED
        (region,) = (await one(bob)).regions
        assert region.base == (2, 4)
        assert region.current == (2, 8)
        meant = COPIED.replace("--\nx\na", "--\nx\nA")
        await bob.write_file("e.txt", meant, mode="truncate")
    assert (ground.workspace / "e.txt").read_text() == meant


async def test_it_waits_on_when_the_file_changes_elsewhere(ground: RunningDaemon) -> None:
    async with ground.client("bob") as bob, ground.client("alice") as alice, ground.client() as person:
        waits = await copied(ground, bob)
        await alice.read_file("e.txt")
        await alice.write_file("e.txt", "z\n", mode="append")
        await follow(person, "conflict_rebased")
        info = await one(person)
        assert (info.conflict, info.fits) == (waits.conflict, False)
    assert (ground.workspace / "e.txt").read_text() == f"{COPIED}z\n"


async def test_a_line_that_occurs_once_goes_to_its_place(ground: RunningDaemon) -> None:
    (ground.workspace / "e.py").write_text("if a:\n    go(1)\n    log()\nend()\n")
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        await bob.read_file("e.py")
        await alice.read_file("e.py")
        await alice.edit_file("e.py", [Replacement(search="end()", replace="if b:\n    go(1)\n    log()\nend()")])
        answer = await bob.edit_file("e.py", [Replacement(search="go(1)", replace="go(2)")])
    assert (answer.status, answer.rung) == ("applied", "shifted")
    assert (
        ground.workspace / "e.py"
    ).read_text() == "if a:\n    go(2)\n    log()\nif b:\n    go(1)\n    log()\nend()\n"


async def test_what_one_sorts_and_another_removes_waits_and_the_proposal_is_without_it(ground: RunningDaemon) -> None:
    """Both took the line from its place, so that a merge of lines alone would leave it where it went."""
    before, ordered, without = (
        "import re\nimport os\n\nx = 1\n",
        "import os\nimport re\n\nx = 1\n",
        "import os\n\nx = 1\n",
    )
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        await alice.write_file("d.py", before, mode="create")
        await bob.read_file("d.py")
        assert (await alice.write_file("d.py", ordered, mode="truncate")).status == "applied"
        late = await bob.write_file("d.py", without, mode="truncate")
        assert late.status == "conflict"
        assert "removed lines that the other moved" in late.message
        assert late.diff is not None
        assert "-import re\n" in late.diff
        assert (
            await bob.write_file("d.py", without, mode="truncate", base=late.paths[0].before, supersedes=late.conflict)
        ).status == "applied"
    assert (ground.workspace / "d.py").read_text() == without


TWINS = ("func fn4() {\n\tlog(x)\n\tx += 1\n}\n", "func fn5() {\n\tlog(x)\n\tx += 1\n}\n")


@pytest.mark.parametrize("part", [0, 1])
async def test_an_edit_never_goes_to_the_twin_of_the_function_that_it_quotes(ground: RunningDaemon, part: int) -> None:
    """Two functions with one body change places: a diff of lines renames them."""
    new = TWINS[part].replace("x += 1", "x += 2")
    (ground.workspace / "f.go").write_text("".join(TWINS))
    async with ground.client("alice") as alice, ground.client("bob") as bob:
        seen = await bob.read_file("f.go")
        await alice.read_file("f.go")
        await alice.write_file("f.go", "".join(reversed(TWINS)), mode="truncate")
        answer = await bob.edit_file("f.go", [Replacement(search=TWINS[part], replace=new)], base=seen.version_id)
    assert answer.status == "conflict"
    assert (ground.workspace / "f.go").read_text() == "".join(reversed(TWINS))
