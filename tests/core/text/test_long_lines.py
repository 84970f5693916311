"""Windows on long lines: around what matters, and never with a part of a secret."""

from __future__ import annotations

import re

import pytest

from orchestrator.core.content import LineRange
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.long_lines import first_difference, window
from orchestrator.core.text.unified_diff import document_diff, fitting_diff

LINE = "".join(f"a{number};" for number in range(1000))
TOKEN = "ghp_" + "x7Q2m9Lk4Rt8Wv3Zp6Yb1Nc5Hd0Js2Gf8Aq4"


@pytest.mark.parametrize(
    ("at", "begins", "ends"),
    [
        pytest.param(0, 0, 100, id="its begin"),
        pytest.param(10, 0, 100, id="near its begin"),
        pytest.param(1000, 975, 1075, id="its middle"),
        pytest.param(len(LINE) - 1, len(LINE) - 100, len(LINE), id="its end"),
        pytest.param(len(LINE), len(LINE) - 100, len(LINE), id="after its end"),
    ],
)
def test_a_window_and_what_it_leaves_out(at: int, begins: int, ends: int) -> None:
    before = f"[{begins} characters left out] … " if begins else ""
    after = f" … [{len(LINE) - ends} characters left out]" if ends < len(LINE) else ""
    assert window(LINE, at, 100) == before + LINE[begins:ends] + after


def test_a_line_that_is_not_long_is_shown_whole() -> None:
    assert window(LINE, 50, len(LINE)) == LINE


@pytest.mark.parametrize("at", range(0, 400, 7))
def test_no_window_holds_a_part_of_a_secret(at: int) -> None:
    line = f"{'a;' * 100}token='{TOKEN}';{'b;' * 200}"
    shown = window(line, at, 60)
    assert not any(TOKEN[n : n + 8] in shown for n in range(len(TOKEN) - 8))


@pytest.mark.parametrize("size", [400, 4_000], ids=["RSA of 2048 bits", "more than of 16384 bits"])
def test_no_window_holds_a_part_of_a_key_in_one_line(size: int) -> None:
    body = "".join(f"{number:x}Ab9/" for number in range(size))
    line = f"{'a;' * 600}-----BEGIN RSA PRIVATE KEY-----{body}-----END RSA PRIVATE KEY-----{'b;' * 600}"
    at = line.index(body) + len(body) * 9 // 10
    assert re.sub(r"\[\d+ characters left out\]", "", window(line, at, 200)).strip(" …") == ""


def test_where_two_lines_begin_to_differ() -> None:
    assert first_difference("abc", "abd") == 2
    assert first_difference("abc", "abc") == 3
    assert first_difference("abc", None) == 0


def text_of(data: str) -> Document:
    document = decode(data.encode())
    assert document is not None
    return document


def test_a_diff_of_long_lines_shows_what_changed_in_them() -> None:
    old, new = text_of(f"one\n{LINE}\ntwo"), text_of(f"one\n{LINE.replace('a500;', 'CHANGED;')}\ntwo")
    shown = document_diff(("a", "a"), old, new, widest=200)
    assert "+[2340 characters left out] … " in shown.text
    assert "CHANGED;a501;" in shown.text
    assert "a500;a501;" in shown.text
    assert shown.text.endswith(" two\n\\ No newline at end of file\n")
    assert len(shown.text) < 800
    assert shown.within == (2, LINE.index("a500;") + 1)
    assert shown.shown == (LineRange(1, 1), LineRange(3, 3))


def test_whole_lines_where_they_are_wanted_and_fit() -> None:
    old, new = text_of(f"{LINE}\n"), text_of(f"{LINE}b\n")
    room = AnswerSpace(bytes=20_000)
    whole = fitting_diff(("a", "a"), old, new, room=room, whole_lines=True)
    assert (f"-{LINE}\n+{LINE}b\n" in whole.text, whole.within) == (True, None)
    for part in (
        *(fitting_diff(("a", "a"), old, new, room=AnswerSpace(bytes=few), whole_lines=True) for few in (80, 200, 1200)),
        fitting_diff(("a", "a"), old, new, room=room, whole_lines=False),
        fitting_diff(("a", "a"), old, new, room=AnswerSpace(bytes=3000), whole_lines=True),
    ):
        assert len(part.text) < 3000
        assert part.within == (1, len(LINE) + 1)
        assert part.goes_on is None
        assert [row[0] for row in part.text.splitlines()] == ["-", "+", "@", "-", "+"]
