"""Whatever the bytes are: read and written back they are the same, and a change touches its own lines only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.charsets import LEGACY, SAMPLE_BYTES, guess, named
from orchestrator.core.text.edits import Edit, replace_text, splice
from orchestrator.core.text.encoding import Document, NotEncodable, decode, encode, reads_back, remembered
from orchestrator.core.text.locate import Replacement, locate_changes
from orchestrator.core.text.search import Pattern
from tests.core.text.strategies import quick

MARKS = [b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]
CODECS = ["utf-8", "utf-16-le", "utf-16-be", "latin-1", "cp1252", "cp932", "gb18030"]
words = st.sampled_from(
    ["größe", "設定", "配置", "“x”", "abc", "", "\u2028", "\x85\x0b\x0c", "镕㐀😀", "\u0a0d", "ソ表"]
)
chunk = st.one_of(
    st.builds(lambda word, codec: word.encode(codec, "ignore"), words, st.sampled_from(CODECS)),
    st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\0", b"\r\0\n\0", b"\0\n", b"\0\r"]),
    st.sampled_from(
        [b"\x87\x90", b"\xfa\x54", b"\x81\x30\x81\x30", b"\x84\x31\xa4\x37", b"\x00\xd8", b"\xdc\x00", b"\x80"]
    ),
    st.binary(max_size=3),
)
hostile = st.builds(lambda mark, parts: mark + b"".join(parts), st.sampled_from(MARKS), st.lists(chunk, max_size=16))
reported = st.sampled_from([None, *LEGACY, "utf-8", "utf-16-le", "of a later release"])


def text_of(data: bytes, **more: str | None) -> Document:
    doc = decode(data, **more)
    assert doc is not None
    return doc


@quick
@given(hostile, reported, reported)
def test_writing_back_is_the_inverse_of_reading(data: bytes, written: str | None, like: str | None) -> None:
    doc = decode(data, written=written, like=like)
    assert doc is None or encode(doc) == data


@quick
@given(hostile, reported, st.data())
def test_a_changed_line_leaves_all_bytes_before_and_after_it(
    data: bytes, written: str | None, draw: st.DataObject
) -> None:
    doc = decode(data, written=written)
    if doc is None or not doc.lines:
        return
    at = draw.draw(st.integers(0, doc.line_count - 1))
    after = encode(splice(doc, [Edit(at, 1, ("other",))]))
    head = len(encode(_only(doc, range(at))))
    tail = len(encode(_only(doc, range(at + 1, doc.line_count)))) - len(encode(_only(doc, range(0))))
    assert after[:head] == data[:head]
    assert tail == 0 or after[-tail:] == data[-tail:]
    assert len(after) == head + len(encode(_only(doc, range(at, at + 1), "other"))) - len(_mark(doc)) + tail


def _only(doc: Document, span: range, text: str | None = None) -> Document:
    kept = {} if text is not None else {at - span.start: raw for at, raw in doc.kept.items() if at in span}
    lines = doc.lines[span.start : span.stop] if text is None else (text,)
    return Document(lines, doc.ends[span.start : span.stop], doc.encoding, kept)


def _mark(doc: Document) -> bytes:
    return encode(Document((), (), doc.encoding))


def _made(doc: Document) -> bytes | NotEncodable:
    try:
        return encode(doc)
    except NotEncodable as error:
        return error


@quick
@given(hostile, st.lists(st.sampled_from(["a", "größe", "設定", "x\ufffdy"]), max_size=5))
def test_a_new_text_reads_back_or_says_that_it_does_not(data: bytes, lines: list[str]) -> None:
    doc = decode(data)
    if doc is None:
        return
    after = replace_text(doc, "".join(f"{line}\n" for line in lines))
    made = _made(after)
    if isinstance(made, NotEncodable):
        assert made.character in lines[made.line - 1]
    elif reads_back(after, made):
        assert text_of(made, written=remembered(after)).lines == after.lines == tuple(lines)


@pytest.mark.parametrize(("text", "codec", "encoding"), [
    pytest.param("# café\n", "latin-1", "latin-1", id="one letter"),
    pytest.param("# Größe, übergeben\nx = 'Straße'\n", "latin-1", "latin-1", id="German"),
    pytest.param("// créé à la main, où ça\n", "latin-1", "latin-1", id="French"),
    pytest.param("# “quoted” — and … €5\n", "cp1252", "cp1252", id="quotes"),
    pytest.param("# it’s\n", "cp1252", "cp1252", id="one curly quote, which a two-byte encoding has as half a kanji"),
    pytest.param("x = “y\n", "cp1252", "cp1252", id="an opening quote"),
])  # fmt: skip
def test_guess(text: str, codec: str, encoding: str) -> None:
    assert guess(text.encode(codec))[0] == encoding
    assert text_of(text.encode(codec)).lines == tuple(text.splitlines())


@pytest.mark.parametrize("head", ["", "x = 1\n" * 50_000, "y" * 300_000])
def test_a_guess_looks_at_the_first_that_is_not_ascii(head: str) -> None:
    assert guess((head + "größe " * SAMPLE_BYTES).encode("latin-1")) == ("latin-1", True)
    assert guess((head + "настройка " * SAMPLE_BYTES).encode("cp1251"))[1] is False


@pytest.mark.parametrize(("data", "written", "like", "encoding"), [
    pytest.param(b"plain\n", None, "cp1252", "cp1252", id="the last quote was deleted"),
    pytest.param("größe\n".encode("latin-1"), None, "cp1252", "cp1252", id="only Latin letters are left"),
    pytest.param("größe\n".encode(), None, "cp1252", "utf-8", id="another program made it UTF-8"),
    pytest.param("größe\n".encode(), "cp1252", None, "cp1252", id="we wrote signs that look like UTF-8"),
    pytest.param(b"it\x81s \n", None, "cp1252", "latin-1", id="what it was does not hold this any more"),
    pytest.param(b"\xff\xfea\0", None, "latin-1", "utf-16-le", id="a mark was put before it"),
    pytest.param(b"\x93x\n", None, "utf-8", "cp1252", id="UTF-8 is found out, not remembered"),
    pytest.param(b"x\n", "ebcdic", "ebcdic", "utf-8", id="a name from a later release"),
    pytest.param("größe äöü 日本\n".encode() + b"\xff\n", None, None, "utf-8", id="UTF-8 with a stray byte"),
    pytest.param("grüße\n".encode() + b"caf\xe9\n", None, None, "utf-8", id="UTF-8 with a line of latin-1"),
    pytest.param("grün\n".encode() + b"caf\xe9\n\xe8\n", None, None, "latin-1", id="latin-1 with a line of UTF-8"),
])  # fmt: skip
def test_an_encoding_stays(data: bytes, written: str | None, like: str | None, encoding: str) -> None:
    doc = text_of(data, written=written, like=like)
    assert doc.encoding == encoding
    assert encode(doc) == data


DAMAGED = "größe äöüàéèç 日本語\n".encode() + b"a \xff b\nc \xfe d\nx \xef\xbf\xbd y\n"
TWINS = DAMAGED + b"same \xff\n" + "größe äöüàéèç 日本語\n".encode() + b"same \xfe\n"


@pytest.mark.parametrize(("edits", "after"), [
    pytest.param([Edit(1, 0, ("more", "lines"))], DAMAGED.replace(b"a ", b"more\nlines\na "), id="beside it"),
    pytest.param([Edit(1, 1, ("whole",))], DAMAGED.replace(b"a \xff b", b"whole"), id="replaced"),
    pytest.param([Edit(1, 2, ())], DAMAGED.replace(b"a \xff b\nc \xfe d\n", b""), id="removed"),
    pytest.param([Edit(1, 2, ("c \ufffd d", "new", "a \ufffd b"))],
                 DAMAGED.replace(b"a \xff b\nc \xfe d", b"c \xfe d\nnew\na \xff b"), id="moved"),
    pytest.param([Edit(1, 1, ()), Edit(4, 0, ("a \ufffd b",))],
                 DAMAGED.replace(b"a \xff b\n", b"") + b"a \xff b\n", id="moved from one place to another"),
    pytest.param([Edit(4, 0, ("a \ufffd b",))], DAMAGED + b"a \xff b\n", id="copied"),
    pytest.param([Edit(3, 1, ("X \ufffd y",))], DAMAGED.replace(b"x \xef", b"X \xef"), id="the sign itself"),
])  # fmt: skip
def test_a_damaged_line_keeps_its_bytes(edits: list[Edit], after: bytes) -> None:
    doc = text_of(DAMAGED)
    assert doc.lines[1:3] == ("a \ufffd b", "c \ufffd d")
    assert encode(doc) == DAMAGED
    assert encode(splice(doc, edits)) == after


@pytest.mark.parametrize("edit", [Edit(1, 1, ("A \ufffd b",)), Edit(0, 3, ("x", "y", "z", "c \ufffd d!"))])
def test_a_damaged_line_is_not_changed_in_part(edit: Edit) -> None:
    """What would be written for its damage is not known: never the sign that is shown for it."""
    with pytest.raises(NotEncodable) as caught:
        encode(splice(text_of(DAMAGED), [edit]))
    assert (caught.value.character, caught.value.line) == ("\ufffd", edit.start + len(edit.lines))


@pytest.mark.parametrize(("edits", "others"), [
    pytest.param([Edit(1, 1, ()), Edit(5, 0, ("A \ufffd b",))], [], id="moved and changed"),
    pytest.param([Edit(5, 0, ("same \ufffd",))], [TWINS], id="back, and like another one"),
])  # fmt: skip
def test_a_line_never_gets_what_it_may_not_have_had(edits: list[Edit], others: list[bytes]) -> None:
    doc = text_of(TWINS.removesuffix(b"same \xfe\n"))
    assert len(doc.kept) == 3
    with pytest.raises(NotEncodable):
        encode(splice(doc, edits, *map(text_of, others)))


@quick
@given(
    st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=4, max_size=4),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
    st.integers(0, 2),
)
def test_a_newline_in_a_search_matches_any_ending(ends: list[str], codec: str, at: int) -> None:
    rows = ["éins", "zwéi", "dréi", "viér"]
    doc = text_of("".join(map(str.__add__, rows, ends)).encode(codec))
    edits = locate_changes(doc, [Replacement(search=f"{rows[at]}\n{rows[at + 1]}\n", replace=f"{rows[at]}\nnéu\n")])
    rows[at + 1] = "néu"
    assert encode(splice(doc, edits.edits)) == "".join(map(str.__add__, rows, ends)).encode(codec)


@pytest.mark.parametrize(("character", "name"), [("€", "U+20AC (€)"), ("\u2028", "U+2028"), ("😀", "U+1F600 (😀)")])
def test_a_character_is_named(character: str, name: str) -> None:
    assert named(character) == name


@pytest.mark.parametrize("case_sensitive", [True, False])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "latin-1", "cp1252"])
def test_no_file_that_holds_a_text_is_ruled_out(codec: str, case_sensitive: bool) -> None:
    for word in ("größe", "abc"):
        pattern = Pattern(word, case_sensitive=case_sensitive)
        assert pattern.maybe(f"x {word} größe\n".encode(codec))
    assert not Pattern("größe").maybe("groesse é\n".encode())
