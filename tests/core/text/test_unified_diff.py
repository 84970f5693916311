"""The lines that a diff shows, read back out of its text."""

from __future__ import annotations

import pytest

from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.unified_diff import document_diff, shown_files

OLD = "".join(f"line {number}\n" for number in range(1, 21))
NEW = OLD.replace("line 9\n", "line nine\n-- a/x\n").replace("line 20\n", "line 20")


@pytest.mark.parametrize(
    ("path", "new", "room", "old_numbers", "new_numbers"),
    [
        pytest.param(
            "a.txt", NEW, UNBOUNDED, [*range(6, 13), *range(17, 21)], [*range(6, 14), *range(18, 22)], id="whole"
        ),
        pytest.param("a.txt", NEW, AnswerSpace(lines=9), [6, 7, 8, 9], [6, 7, 8, 9], id="cut"),
        pytest.param("odd näme\n.txt", NEW, AnswerSpace(lines=5), [6], [6], id="odd name"),
        pytest.param("a.txt", "", UNBOUNDED, [*range(1, 21)], [], id="emptied"),
    ],
)
def test_shown_files(path: str, new: str, room: AnswerSpace, old_numbers: list[int], new_numbers: list[int]) -> None:
    before, after = decode(OLD.encode()), decode(new.encode())
    assert before is not None
    assert after is not None
    shown = document_diff((path, path), before, after, room=room)
    (file,) = shown_files(shown.text)
    assert [(n, before.lines[n - 1]) for n in old_numbers] == file.old
    assert [(n, after.lines[n - 1]) for n in new_numbers] == file.new


def test_several_files_and_renames() -> None:
    before, after = decode(OLD.encode()), decode(NEW.encode())
    assert before is not None
    assert after is not None
    one, two = (document_diff((name, name), before, after, context=0).text for name in ("one", "two"))
    both = [*shown_files(f"{one}new file three\nrename from old\nrename to two\n{two}")]
    assert [(file.old_name, file.new_name) for file in both] == [("a/one", "b/one"), ("a/old", "b/two")]
    assert both[0].old == both[1].old == [(9, "line 9"), (20, "line 20")]
