"""Lines of files that are read by pieces, against the lines of the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.content import Signature
from orchestrator.core.text import line_index
from orchestrator.core.text.charsets import MARKS, Encoding
from orchestrator.core.text.line_index import LineIndex, after_end, after_ends, count_ends
from orchestrator.core.text.lines import split
from orchestrator.engine.reads import line_scan
from orchestrator.engine.reads.line_scan import LineScan
from orchestrator.ports.workspace import FileStat

TEXTS = st.lists(st.sampled_from(["a", "bc", "é", "\n", "\r", "\r\n", "\n", "x" * 40, ""]), max_size=80).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"])


class Bytes:
    """A file in memory; no hole."""

    handle = -1

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.stat = FileStat("file", Signature(len(data), 1, 1, 1), 0o644, 1)

    def stat_now(self) -> FileStat:
        return self.stat

    def read(self, at: int, count: int) -> bytes:
        return self.data[at : at + count]

    def data_from(self, at: int) -> int:
        return at

    def close(self) -> None:
        return


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a few bytes, so that every border is met."""
    for name, count in (("STEP_BYTES", 16), ("MARK_BYTES", 8)):
        monkeypatch.setattr(line_index, name, count)
        monkeypatch.setattr(line_scan, name, count)
    monkeypatch.setattr(line_scan, "PIECE_BYTES", 12)
    monkeypatch.setattr(line_index, "_SLICE_BYTES", 8)


def written(text: str, encoding: Encoding) -> bytes:
    return MARKS.get(encoding, b"") + text.encode(encoding.removesuffix("-sig"))


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=300)
@given(text=TEXTS, encoding=ENCODINGS, first=st.integers(1, 90), most=st.integers(1, 90))
def test_a_range_is_that_of_the_whole_text(text: str, encoding: Encoding, first: int, most: int) -> None:
    data, lines = written(text, encoding), split(text)[0]
    scan = LineScan(Bytes(data), LineIndex.empty(encoding, len(data)), len(data))
    while not scan.look_through(first, 16):
        pass
    if first <= len(lines):
        assert scan.rows(scan.offset_of(first), most, 1 << 20).lines == lines[first - 1 : first - 1 + most]
    assert scan.look_through(None, 1 << 20)
    assert scan.total == len(lines) or (not text and scan.total is not None)


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=300)
@given(text=TEXTS.filter(bool), encoding=ENCODINGS, count=st.integers(1, 90))
def test_the_last_lines_are_those_of_the_whole_text(text: str, encoding: Encoding, count: int) -> None:
    data, lines = written(text, encoding), split(text)[0]
    scan = LineScan(Bytes(data), LineIndex.empty(encoding, len(data)), len(data))
    found = scan.from_end(count)
    assert found is not None
    at, there = found
    assert there == min(count, len(lines))
    assert scan.rows(at, there, 1 << 20).lines == lines[-count:]


@settings(max_examples=300)
@given(text=TEXTS, cut=st.integers(0, 200))
def test_ends_are_counted_once_across_a_border(text: str, cut: int) -> None:
    data = text.encode()
    cut = min(cut, len(data))
    counted = count_ends(data[: cut + 2], cut) + count_ends(data[cut:], len(data) - cut)
    assert counted == len([end for end in split(text)[1] if end])
    ends = list(after_ends(data, len(data)))
    assert [after_end(data, len(data), n) for n in range(1, len(ends) + 1)] == ends


def test_an_index_of_another_content_is_noticed() -> None:
    data = b"".join(b"line %d\n" % n for n in range(200_000))
    index = LineIndex.empty("utf-8", len(data))
    assert LineScan(Bytes(data), index, len(data)).look_through(None, 1 << 30)
    for at in (0, len(data) // 2 // line_index.STEP_BYTES * line_index.STEP_BYTES):
        other = data[:at] + b"LINE" + data[at + 4 :]
        assert not LineScan(Bytes(other), index, len(data)).is_same()
