"""What is matched of a large file piece by piece, against a search of the whole text: nothing is missed silently."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.text.charsets import Encoding
from orchestrator.core.text.fuzzy import FuzzyPattern
from orchestrator.core.text.lines import split
from orchestrator.core.text.regex import RegexPattern, compiled
from orchestrator.core.text.search import Matcher, Pattern, search
from orchestrator.engine.reads import search_places
from orchestrator.engine.reads.search_matches import Spotted, apart, matched
from orchestrator.engine.reads.search_places import Places, Reach, batch
from tests.engine.test_line_scan import Bytes, written

TEXTS = st.tuples(
    st.lists(st.sampled_from(["a", "b", "ab", "c" * 9, "", "b é"]), max_size=40), st.sampled_from("\n\r")
).map(lambda text: f"a{text[1]}{text[1].join(text[0])}")
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"])
SEVERAL = [r"a\n(?:b\n|c+\n)*ab", r"a\nb", r"b\n[^c]*?a$", r"a\n.*\n.*b", r"^\n", r"a\n\n?\n?\n?", "a", r"(?s)b.{1,9}a"]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("PIECE_BYTES", 16), ("NEAR_BYTES", 4), ("BATCH_BYTES", 150), ("BESIDE_BYTES", 8)):
        monkeypatch.setattr(search_places, name, count)


def spotted(
    text: str, encoding: Encoding, matcher: Matcher, reach: Reach, *, invert: bool, offsets: list[int] | None
) -> tuple[int, list[Spotted]]:
    """How many places are cut short, and what is found at these places, or at all."""
    data = written(text, encoding)
    there, found, done, short = Places(Bytes(data), len(data), encoding, reach), list[Spotted](), 0, 0
    places = there.all() if offsets is None else there.around(offsets)
    while some := batch(places):
        short += sum(place.short for place in some)
        more, _, done = matched(some, matcher, encoding, invert=invert, done=done)
        found += more
    return short, apart(found) if matcher.multiline else found


def agrees(
    text: str,
    encoding: Encoding,
    matcher: Matcher,
    reach: Reach,
    *,
    invert: bool = False,
    offsets: list[int] | None = None,
) -> bool:
    """Whether it is as in the whole text; else some place was cut short."""
    short, found = spotted(text, encoding, matcher, reach, invert=invert, offsets=offsets)
    whole = search(split(text)[0], matcher, invert=invert, max_hits=1000, context_lines=0)
    wanted = [(hit.text, hit.submatches) for hit in whole.hits]
    same = [("\n".join(one.lines), one.spot.spans) for one in found] == wanted
    assert same or short
    return same


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=300)
@given(text=TEXTS, encoding=ENCODINGS, pattern=st.sampled_from(SEVERAL), word=st.booleans(), invert=st.booleans())
def test_several_lines(text: str, encoding: Encoding, pattern: str, *, word: bool, invert: bool) -> None:
    """However few bytes behind a piece are read; over a known number of lines nothing is cut short."""
    matcher = RegexPattern(pattern, word=word, multiline=True)
    for after in (8, 64):
        same = agrees(text, encoding, matcher, Reach(matcher.most_breaks, after), invert=invert)
        assert same or matcher.most_breaks is None
    assert agrees(text, encoding, matcher, Reach(matcher.most_breaks, 4096), invert=invert)


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=300)
@given(
    lines=st.lists(st.sampled_from(["a", "b", "ab", "c" * 9, "", "b é"]), max_size=40), pattern=st.sampled_from(SEVERAL)
)
def test_several_lines_around_what_ripgrep_names(lines: list[str], pattern: str) -> None:
    """Each of its places is where a match begins, of which none lies over another."""
    text, matcher = "\n".join([*lines, ""]), RegexPattern(pattern, multiline=True)
    found = compiled(pattern, case_sensitive=True, multiline=True).finditer(text)
    offsets = [len(text[: one.start()].encode()) for one in found]
    assert agrees(text, "utf-8", matcher, Reach(matcher.most_breaks, 4096), offsets=offsets)
    agrees(text, "utf-8", matcher, Reach(matcher.most_breaks, 8), offsets=offsets)


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=150)
@given(text=TEXTS, encoding=ENCODINGS, invert=st.booleans())
@pytest.mark.parametrize("matcher", [Pattern("a"), Pattern("b", word=True), RegexPattern("^$|c"), FuzzyPattern("cacc")])
def test_one_line(text: str, encoding: Encoding, matcher: Matcher, *, invert: bool) -> None:
    assert agrees(text, encoding, matcher, Reach(), invert=invert and matcher.kind != "fuzzy")


@pytest.mark.usefixtures("small_pieces")
def test_what_may_go_on_is_told() -> None:
    text = "a\n" + "b\n" * 50 + "ab\n" + "x\n" * 50
    matcher = RegexPattern(SEVERAL[0], multiline=True)
    assert not agrees(text, "utf-16-le", matcher, Reach(matcher.most_breaks, 32))
    assert agrees(text, "utf-16-le", matcher, Reach(matcher.most_breaks, 256))
