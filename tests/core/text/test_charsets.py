"""Of a guessed encoding: whether it may be relied on, and what may be written where it may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.charsets import guess, holds
from orchestrator.core.text.edits import Edit, replace_text, splice
from orchestrator.core.text.encoding import Document, NotEncodable, decode, encode, remembered, with_runs_of
from tests.core.text.strategies import quick

CERTAIN = {
    "cp1252": ["“x”", "€5", "it’s", "–", "São Paulo – AÇÕES", "l’été", "“École”", "don’t – “É”", "größe – 5 €"],
    "latin-1": [
        *("GRÖßE", "STRAßE", "ÇÉDILLE", "naïve", "Ünïcödé", "Größe", "£5", "©2020", "CAFÉ", "FRANÇAIS", "MÜLLER"),
        *("ÃO", "AÇÃO", "NÃO", "à la mer", "10 °C", "m²", "½ Stück", "¿Qué?", "«été»", "Æblegrød", "größeMax", "légal"),
    ],
}
"""By encoding, words of which one alone in a file says in what that is."""

IN_DOUBT = {
    "cp932": [
        *(
            "年",
            "ﾃｽﾄ",
            "テスト",
            "日本",
            "東京都",
            "名前=値",
            "エラー: 失敗",
            "はい",
            "価格 100円",
            "ﾃｽﾄ用の設定ファイル",
        ),
        *("月,火,水", "これは日本語のコメントです" * 40),
    ],
    "gb18030": [
        *("测试", "是", "否", "名称=值", "你好，世界", "配置文件", "中文内容测试，国家标准编码文字很多的"),
        *("这是一个中文注释", "这是㐀一个中文注释😀", "使用int类型的配置文件 a.txt" * 40),
    ],
    "cp1252": ["ÄÖÜ", "ÀÉ", "ÉÈ", "ñÑ", "ÅÄÖ", "ØÆ", "ÞÐ", "x = “y"],
    "euc_jp": ["日本語テキスト表示", "日本", "設定ファイル", "東京都", "これは日本語のコメントです" * 40],
    "euc_kr": ["설정 파일입니다", "한국어", "이것은 한국어 주석입니다" * 40],
    "big5": ["設定檔案", "繁體中文測試內容"],
    "cp1251": ["Привет мир", "настройка – файл"],
    "koi8-r": ["Привет мир"],
    "iso8859-7": ["ρυθμίσεις αρχείου"],
}
"""The same of words that do not, or that are in an encoding which we do not read."""


@pytest.mark.parametrize(
    ("encoding", "word"),
    [pytest.param(name, word, id=f"{name} {word[:20]}") for name, words in CERTAIN.items() for word in words],
)
def test_a_word_that_says_its_encoding(encoding: str, word: str) -> None:
    data = f"key = 1\n# {word}\n".encode(encoding)
    assert guess(data) == (encoding, True)
    doc = decode(data)
    assert doc is not None
    assert doc.runs is None


@pytest.mark.parametrize(
    ("codec", "word"),
    [pytest.param(name, word, id=f"{name} {word[:20]}") for name, words in IN_DOUBT.items() for word in words],
)
def test_a_word_that_does_not(codec: str, word: str) -> None:
    data = f"key = 1\n# {word}\n".encode(codec)
    doc = decode(data)
    assert doc is not None
    assert doc.runs is not None
    assert encode(doc) == data
    assert encode(splice(doc, [Edit(0, 1, ("key = 2",))])) == data.replace(b"1", b"2", 1)
    with pytest.raises(NotEncodable, match="it is not certain"):
        encode(splice(doc, [Edit(0, 1, ("key = é",))]))


DATA = "key = 1\n# 测试\nx\n# 否\n".encode("gb18030")


def in_doubt() -> Document:
    doc = decode(DATA)
    assert doc is not None
    assert doc.runs is not None
    return doc


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        pytest.param([Edit(0, 1, ("key = 2",))], "key = 2\n# 测试\nx\n# 否\n", id="ASCII"),
        pytest.param([Edit(1, 1, ())], "key = 1\nx\n# 否\n", id="its text removed"),
        pytest.param([Edit(1, 1, ("{1} again",))], "key = 1\n# 测试 again\nx\n# 否\n", id="beside its text"),
        pytest.param([Edit(2, 1, ("{1}",))], "key = 1\n# 测试\n# 测试\n# 否\n", id="its text again"),
    ],
)
def test_what_is_there_may_be_kept_moved_and_removed(edits: list[Edit], after: str) -> None:
    doc = in_doubt()
    reported = [Edit(e.start, e.length, tuple(line.replace("{1}", doc.lines[1]) for line in e.lines)) for e in edits]
    assert encode(splice(doc, reported)) == after.encode("gb18030")


def test_a_part_of_what_is_there_is_another_text() -> None:
    """Half of what is shown may be half of a character."""
    doc = in_doubt()
    (run,) = [run for run in doc.runs or () if run in doc.lines[1]]
    with pytest.raises(NotEncodable, match="it is not certain") as caught:
        encode(replace_text(doc, f"a\n{run[0]}\n"))
    assert caught.value.line == 2
    assert caught.value.character == run[0]


def test_doubt_is_remembered_and_goes_where_it_is_reported_otherwise() -> None:
    doc = in_doubt()
    assert remembered(doc) == f"{doc.encoding}?"
    for reported in ({"written": remembered(doc)}, {"like": remembered(doc)}):
        assert decode(DATA, **reported) == doc
        plain = decode(b"key = 1\n", **reported)
        assert plain is not None
        assert (plain.runs is None) == ("written" not in reported and "like" not in reported)


def test_what_another_version_holds_may_come_back() -> None:
    doc = in_doubt()
    less = splice(doc, [Edit(1, 1, ())])
    (read,) = [decode(encode(less), written=remembered(less))]
    assert read is not None
    back = [Edit(1, 0, (doc.lines[1],))]
    with pytest.raises(NotEncodable, match="it is not certain"):
        encode(splice(read, back))
    assert encode(splice(with_runs_of(read, doc), back)) == DATA


@quick
@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x30FF, exclude_categories=["Cs"]), max_size=30))
def test_a_document_in_doubt_writes_no_other_bytes_than_it_had(text: str) -> None:
    """Whatever is sent: it is refused, or every byte beyond ASCII stood in the file."""
    line = "".join(text.split("\n"))
    try:
        made = encode(splice(in_doubt(), [Edit(2, 1, (line.replace("\r", ""),))]))
    except NotEncodable as refused:
        uncertain = refused.uncertain
    else:
        assert sorted(byte for byte in made if byte >= 0x80) == sorted(byte for byte in DATA if byte >= 0x80)
        return
    assert uncertain
    assert not line.isascii()


@quick
@given(data=st.binary(max_size=60))
def test_any_bytes_can_be_judged(data: bytes) -> None:
    encoding, _ = guess(data)
    assert holds(data, encoding) is not None
