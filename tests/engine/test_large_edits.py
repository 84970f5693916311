"""Changes of passages of large files, against the same decided on the whole text."""

from __future__ import annotations

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.content import LargeContent, LineHunk, SplicedContent, digest_of
from orchestrator.core.decisions.commands import Command, Edit, Write
from orchestrator.core.decisions.decision import Apply, Facts, Held
from orchestrator.core.decisions.patches import Patch
from orchestrator.core.errors import CallerError, PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.splices import spliced
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.forms.recognise import parse
from orchestrator.core.text.locate import LineReplacement, Replacement
from orchestrator.engine.changes.large_edits import LargeEdits
from orchestrator.engine.changes.large_excerpts import find_all
from orchestrator.engine.external.observer import Observer
from tests.engine.parts import services_of
from tests.in_memory.workspace import MemoryWorkspace

PATH = WorkspacePath("app.log")
ROWS = st.sampled_from(["a", "b", "ab", "", "  a", "é", "x" * 30, "1\tone"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
Made = tuple[bytes, tuple[LineHunk, ...]] | tuple[str, object]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Some forty lines, most of them told apart by a number."""
    end = draw(ENDS)
    rows = [f"{row} {n}" if draw(st.integers(0, 3)) else row for n, row in enumerate(draw(st.lists(ROWS, min_size=1)))]
    return end.join(rows) + draw(st.sampled_from([end, ""]))


@st.composite
def commands(draw: st.DrawFn, text: str) -> Command:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = plain.split("\n")
    new = draw(st.sampled_from(["", "new", "new\n", "two\nlines\n", "\nnew"]))
    match draw(st.sampled_from(["search", "search", "several", "lines", "append", "patch"])):
        case "lines":
            start = draw(st.integers(0, len(lines) + 1))
            end = draw(st.integers(start, start + 3))
            expect = "\n".join(lines[max(0, start - 1) : end])
            return Edit(path=PATH, changes=(LineReplacement(start, end, expect, new),))
        case "append":
            return Write(path=PATH, content=new or "more", mode="append")
        case "patch":
            at = draw(st.integers(0, len(lines) - 1))
            old = [f" {lines[at]}\n", *(f"-{row}\n" for row in lines[at + 1 : at + 2])]
            patch = f"--- a/{PATH}\n+++ b/{PATH}\n@@ @@\n{''.join(old)}+new\n"
            return Patch.of(PATH, parse(patch, PATH).files[0])
        case form:
            changes = []
            for _ in range(2 if form == "several" else 1):
                begin = draw(st.integers(0, max(0, len(plain) - 1)))
                searched = plain[begin : begin + draw(st.integers(1, 60))]
                changes.append(Replacement(searched, new, draw(st.sampled_from([1, 1, 1, 2]))))
            return Edit(path=PATH, changes=tuple(changes))


def whole(command: Command, data: bytes) -> Made:
    """As it is decided on the whole text."""
    here = Facts(PATH, Held(data, digest_of(data), 0o644, decode(data)), None)
    try:
        outcome = command.decide({PATH: here})
    except (CallerError, PathError) as error:
        return error.code, error.details.get("lines")
    assert isinstance(outcome, Apply)
    (content,) = outcome.contents.values()
    assert isinstance(content.data, bytes)
    return content.data, outcome.paths[0].hunks


async def by_pieces(command: Command, data: bytes) -> Made:
    """The same of a content that stays out of memory."""
    workspace = MemoryWorkspace()
    workspace.put(PATH, data)
    services = services_of(workspace)
    await Observer(services).refresh(PATH, content=True)
    edits = LargeEdits(services)
    facts = {PATH: Facts(PATH, Held(LargeContent(digest_of(data), len(data)), digest_of(data), 0o644), None)}
    try:
        looked = await edits.excerpted(command, facts)
        assert looked is not None
        try:
            plan = looked.command.decide(looked.facts)
        except CallerError as error:
            raise looked.of_file(error) from None
        assert isinstance(plan, Apply)
        made = await edits.applied(looked, plan)
    except (CallerError, PathError) as error:
        return error.code, error.details.get("lines")
    change, (content,) = made.paths[0], made.contents.values()
    assert isinstance(content.data, SplicedContent)
    result = b"".join(spliced([data], content.data.splices))
    assert (change.before, change.after) == (digest_of(data), digest_of(result))
    assert content.data.size == len(result)
    return result, change.hunks


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_passage_is_changed_as_in_the_whole_text(data: st.DataObject) -> None:
    text = data.draw(texts().filter(bool))
    command = data.draw(commands(text))
    encoded = text.encode()
    assert anyio.run(by_pieces, command, encoded) == whole(command, encoded)


@given(
    data=st.lists(st.sampled_from([b"a", b"b", b"ab"]), max_size=40).map(b"".join),
    needles=st.lists(
        st.lists(st.sampled_from([b"a", b"ab", b"ba", b"aab"]), unique=True).map(tuple),
        max_size=3,
    ),
    block=st.integers(1, 7),
)
def test_places_are_found_across_the_borders_of_blocks(
    data: bytes, needles: list[tuple[bytes, ...]], block: int
) -> None:
    blocks = [data[at : at + block] for at in range(0, len(data), block)]
    expected = [
        sorted((at, len(form)) for form in forms for at in range(len(data)) if data.startswith(form, at))
        for forms in needles
    ]
    assert find_all(blocks, needles) == expected
