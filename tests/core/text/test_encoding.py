from __future__ import annotations

import pickle
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.charsets import MARKS, PIECE_BYTES, Encoding, codec_of
from orchestrator.core.text.edits import Edit, edits_between, replace_text, splice
from orchestrator.core.text.encoding import (
    MOST_DOUBTED_BYTES,
    PACKED_LINES,
    Document,
    NotEncodable,
    decode,
    encode,
    new_document,
)
from orchestrator.core.text.lines import plain, split
from tests.core.text.strategies import file_bytes, lf_text, plain_lines, quick


def document(data: bytes) -> Document:
    doc = decode(data)
    assert doc is not None
    return doc


@pytest.mark.parametrize(("data", "encoding", "eol", "final"), [
    pytest.param(b"", "utf-8", "none", False, id="empty"),
    pytest.param(b"a", "utf-8", "none", False, id="no ending at all"),
    pytest.param(b"a\nb\n", "utf-8", "lf", True, id="lf"),
    pytest.param(b"a\r\nb", "utf-8", "crlf", False, id="crlf, no final newline"),
    pytest.param(b"a\rb\r", "utf-8", "cr", True, id="cr"),
    pytest.param(b"a\rb\n", "utf-8", "mixed", True, id="mixed"),
    pytest.param(b"\xef\xbb\xbfa\n", "utf-8-sig", "lf", True, id="byte order mark"),
    pytest.param(b"\xef\xbb\xbf", "utf-8-sig", "none", False, id="nothing but the mark"),
    pytest.param(b"caf\xe9\n", "latin-1", "lf", True, id="not UTF-8"),
    pytest.param(b"a\x81\x85b\xe9 \n", "latin-1", "lf", True, id="C1 next line is no ending"),
    pytest.param(b"a" * 8_000 + b"\0", "utf-8", "none", False, id="a NUL far down"),
])  # fmt: skip
def test_decode(data: bytes, encoding: str, eol: str, final: bool) -> None:
    doc = document(data)
    assert (doc.encoding, doc.eol, doc.final_newline) == (encoding, eol, final)
    assert encode(doc) == data


DAMAGED_UTF_16 = [b"\xff\xfea\0\n\0\x00\xd8\n\0b\0\n\0", b"\xfe\xff\0a\0\r\0b\0\r\0"]
"""Half of a pair; an odd byte at the end."""


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe\0\0", b"\xfe\xff\0a\0\0", "a".encode("utf-32"), *DAMAGED_UTF_16])
def test_binary(data: bytes) -> None:
    assert decode(data) is None


@quick
@given(file_bytes)
def test_a_document_is_the_same_in_another_process(data: bytes) -> None:
    doc = decode(data)
    assert pickle.loads(pickle.dumps(doc)) == doc


LONG = PIECE_BYTES // 5
"""Lines."""


@pytest.mark.parametrize("encoding", get_args(Encoding))
def test_long_texts_are_read_and_written_in_pieces(encoding: Encoding) -> None:
    """A character may stand across the end of a piece, a line ending too."""
    head = "\ufeff" if encoding in MARKS else ""
    wide = "é" if encoding in ("latin-1", "cp1252") else "日本語"
    text = head + "".join(f"{'a' * (n % 7)}{wide}\r\n" for n in range(LONG))
    codec = codec_of(encoding)
    data = MARKS.get(encoding, b"") + text.removeprefix(head).encode(codec)
    assert len(data) > PIECE_BYTES
    doc = decode(data, written=encoding)
    assert doc is not None
    assert (doc.encoding, doc.line_count, doc.lines[-1][-len(wide) :]) == (encoding, LONG, wide)
    assert encode(doc) == data


def test_the_line_of_what_is_not_encodable_is_that_of_the_text() -> None:
    doc = Document(("a",) * PACKED_LINES + ("é", "日"), ("\n",) * (PACKED_LINES + 2), "latin-1")
    with pytest.raises(NotEncodable, match=str(PACKED_LINES + 2)):
        encode(doc)


def test_a_document_is_packed_in_pieces() -> None:
    doc = document(b"a line\r\n" * PACKED_LINES + b"\n" * PACKED_LINES + b"end")
    assert pickle.loads(pickle.dumps(doc)) == doc
    assert len(doc.__reduce__()[1][0]) == 3  # type: ignore[arg-type]  # of pieces


@quick
@given(file_bytes)
def test_encode_is_the_inverse(data: bytes) -> None:
    doc = decode(data)
    assert doc is None or encode(doc) == data


@pytest.mark.parametrize(("before", "edits", "after"), [
    pytest.param(b"a\r\nb\nc\r", [Edit(1, 1, ("B",))], b"a\r\nB\nc\r", id="position by position"),
    pytest.param(b"a\r\nb\nc\r", [Edit(0, 2, ("A", "B", "C"))], b"A\r\nB\nC\nc\r", id="the line before lends its own"),
    pytest.param(b"a\r\nb\n", [Edit(0, 0, ("x",))], b"x\r\na\r\nb\n", id="at the top the line after does"),
    pytest.param(b"a\r\nb", [Edit(1, 1, ("B",))], b"a\r\nB", id="no final newline stays"),
    pytest.param(b"a\r\nb", [Edit(1, 1, ("B", "C"))], b"a\r\nB\r\nC", id="the last line becomes two"),
    pytest.param(b"a\r\nb", [Edit(0, 2, ("A",))], b"A", id="two lines become the last"),
    pytest.param(b"a\r\nb", [Edit(2, 0, ("c",))], b"a\r\nb\r\nc", id="appended"),
    pytest.param(b"a\r\nb", [Edit(2, 0, ("c",), True)], b"a\r\nb\r\nc\r\n", id="appended with a newline"),
    pytest.param(b"a\nb\n", [Edit(1, 1, ("B",), False)], b"a\nB", id="the newline goes"),
    pytest.param(b"a\nb", [Edit(2, 0, (), True)], b"a\nb\n", id="only a newline"),
    pytest.param(b"a\nb", [Edit(1, 1, ())], b"a\n", id="removal changes no other byte"),
    pytest.param(b"a\nb\n", [Edit(0, 2, ())], b"", id="everything removed"),
    pytest.param(b"", [Edit(0, 0, ("a", "b"))], b"a\nb\n", id="into an empty file"),
    pytest.param(b"\xef\xbb\xbfa", [Edit(0, 1, ("b",))], b"\xef\xbb\xbfb", id="byte order mark"),
    pytest.param(b"a\rx\n\n", [Edit(1, 1, ())], b"a\r\n\n", id="carriage return before an empty line"),
    pytest.param(b"a\nb\nc\n", [Edit(0, 1, ()), Edit(2, 1, ("C",))], b"b\nC\n", id="two edits"),
    pytest.param(b"a\nb", [Edit(1, 1, ("",))], b"a\n", id="an empty line without ending is none"),
])  # fmt: skip
def test_splice(before: bytes, edits: list[Edit], after: bytes) -> None:
    assert encode(splice(document(before), edits)) == after


@pytest.mark.parametrize("edits", [
    pytest.param([Edit(1, 1, ()), Edit(0, 1, ())], id="order"),
    pytest.param([Edit(0, 2, ()), Edit(1, 1, ())], id="overlap"),
    pytest.param([Edit(2, 1, ())], id="range"),
    pytest.param([Edit(0, 1, ("a\nb",))], id="a newline in a line"),
])  # fmt: skip
def test_splice_refuses(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="edit at"):
        splice(document(b"a\nb\n"), edits)


@quick
@given(file_bytes, st.data())
def test_splice_touches_no_other_byte(data: bytes, draw: st.DataObject) -> None:
    doc = decode(data)
    if doc is None or doc.kept:  # test_fidelity has those
        return
    start = draw.draw(st.integers(0, doc.line_count))
    length = draw.draw(st.integers(0, doc.line_count - start))
    new = tuple(draw.draw(st.lists(st.sampled_from(["x", "yz"]), max_size=4)))
    after = encode(splice(doc, [Edit(start, length, new)]))
    head = encode(Document(doc.lines[:start], doc.ends[:start], doc.encoding))
    tail = "".join(a + b for a, b in zip(doc.lines[start + length :], doc.ends[start + length :], strict=True))
    if "\r" not in doc.ends:  # test_splice has the exception
        assert after.startswith(head)
    assert after.endswith(tail.encode(codec_of(doc.encoding)))
    again = decode(after, written=doc.encoding)
    if doc.line_count and again is not None:  # a removal may leave a mark, or a NUL, where it makes a file binary
        assert again.lines == (*doc.lines[:start], *new, *doc.lines[start + length :])


@quick
@given(file_bytes, plain_lines, st.booleans())
def test_replace_text(data: bytes, lines: list[str], final: bool) -> None:
    doc = decode(data)
    if doc is None:
        return
    text = "\n".join(lines) + ("\n" if final and lines else "")
    after = replace_text(doc, text)
    assert after.text == text
    assert after.encoding == doc.encoding
    assert all("\n" not in line and "\r" not in line for line in after.lines)
    if doc.eol not in {"mixed", "none"} and after.eol != "none":
        assert after.eol == doc.eol
    again, ends = split("".join(a + b for a, b in zip(after.lines, after.ends, strict=True)))
    assert (tuple(again), tuple(ends)) == (after.lines, after.ends)


@quick
@given(file_bytes, lf_text)
def test_edits_between_give_the_text(data: bytes, text: str) -> None:
    doc = decode(data)
    if doc is None:
        return
    lines, ends = split(text)
    assert splice(doc, edits_between(doc, lines, bool(ends) and ends[-1] != "")).text == text
    assert splice(doc, edits_between(doc, doc.lines, doc.final_newline)) == doc


@pytest.mark.parametrize(("before", "text", "after"), [
    pytest.param(b"a\r\nb\nc\r\n", "a\nx\nc\n", b"a\r\nx\nc\r\n", id="equal lines keep theirs"),
    pytest.param(b"a\r\nb\r\n", "b\nc", b"b\r\nc", id="uniform endings stay"),
    pytest.param(b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n", id="a carriage return is taken literally"),
    pytest.param(b"a\n", "", b"", id="emptied"),
    pytest.param(b"a\nb", "a\nb\n", b"a\nb\n", id="only the newline"),
    pytest.param(b"", "a", b"a", id="filled"),
])  # fmt: skip
def test_replace_text_bytes(before: bytes, text: str, after: bytes) -> None:
    assert encode(replace_text(document(before), text)) == after


def test_new_document_is_literal() -> None:
    assert encode(new_document("é\r\nb\rc")) == "é\r\nb\rc".encode()
    assert new_document("a\rb").text == plain("a\rb")


@pytest.mark.parametrize(("doc", "character", "line"), [
    pytest.param(Document(("é", "a€"), ("\n", ""), "latin-1"), "€", 2, id="latin-1, second line"),
    pytest.param(Document(("€",), ("",), "latin-1"), "€", 1, id="latin-1, at once"),
    pytest.param(Document(("a", "\ud800"), ("\r\n", "\n")), "\ud800", 2, id="a lone surrogate"),
])  # fmt: skip
def test_not_encodable(doc: Document, character: str, line: int) -> None:
    with pytest.raises(NotEncodable) as caught:
        encode(doc)
    assert (caught.value.character, caught.value.line) == (character, line)


CYRILLIC = "Привет, мир\n".encode("cp1251")  # which nobody can tell from other letters


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        pytest.param(CYRILLIC * (MOST_DOUBTED_BYTES // len(CYRILLIC)), "latin-1?", id="as large as may be"),
        pytest.param(CYRILLIC * (MOST_DOUBTED_BYTES // len(CYRILLIC) + 1), None, id="larger, and in doubt"),
        pytest.param("Größe\n".encode("latin-1") * 1_000_000, "latin-1", id="larger, and certain"),
        pytest.param("Größe\n".encode() * 1_000_000 + b"\xff\n" * 800, "utf-8", id="UTF-8 with a few damages"),
        pytest.param(bytes(range(1, 256)) * 20_000, None, id="every byte"),
    ],
)
def test_a_large_file_in_no_known_encoding_is_binary(data: bytes, reported: str | None) -> None:
    """Its runs of letters alone took 5 s of processor time for 40 MB, at each look."""
    document = decode(data)
    assert (document.encoding_hint if document is not None else None) == reported
