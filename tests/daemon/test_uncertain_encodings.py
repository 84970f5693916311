"""Files whose encoding a few characters do not give away, through a real daemon: no byte is made up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.crash.scenarios import POLICY
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

WORDS = [
    pytest.param("gb18030", "测试", "添加", id="GB18030 of two hanzi"),
    pytest.param("gb18030", "是", "添加", id="GB18030 of one hanzi"),
    pytest.param("gb18030", "这是一个中文注释", "添加", id="GB18030 of a sentence"),
    pytest.param("cp932", "設定ファイル", "追加", id="Shift-JIS of a word"),
    pytest.param("cp1252", "ÄÖÜ", "é", id="capitals that other letters read as, too"),
    pytest.param("euc_jp", "日本語テキスト表示", "追加", id="EUC-JP"),
    pytest.param("cp932", "年", "追加", id="Shift-JIS of one kanji"),
    pytest.param("cp1251", "Привет мир", "é", id="Cyrillic"),
]


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """Under a policy that lets everything through; a test may stop and start it."""
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    daemon.start()
    yield daemon
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log, daemon.log[-4000:]


@pytest.mark.parametrize(("codec", "word", "more"), WORDS)
async def test_ascii_goes_and_the_rest_is_refused_for_as_long_as_it_is_not_certain(
    daemon: RunningDaemon, codec: str, word: str, more: str
) -> None:
    """Also after we wrote the file ourselves, and after a restart: that makes the guess no better."""
    file = daemon.workspace / "a.txt"
    tail = f"# {word}\n".encode(codec)
    file.write_bytes(b"key = 1\n" + tail)

    async def refused(old: str, new: str) -> RemoteError:
        async with daemon.client("alice") as alice:
            await alice.read_file("a.txt")
            with pytest.raises(RemoteError) as caught:
                await alice.edit_file("a.txt", [Replacement(search=old, replace=new)])
        return caught.value

    error = await refused("key = 1", f"key = {more}")
    assert error.code == "not_encodable"
    assert "not certain" in str(error)
    assert "UTF-8" in error.hint
    assert error.details["uncertain"] is True
    assert file.read_bytes() == b"key = 1\n" + tail
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        assert (await alice.edit_file("a.txt", [Replacement(search="key = 1", replace="key = 2")])).status == "applied"
    assert file.read_bytes() == b"key = 2\n" + tail
    assert (await refused("key = 2", f"key = {more}")).code == "not_encodable"
    assert daemon.stop() == 0
    daemon.start()
    assert (await refused("key = 2", f"key = {more}")).code == "not_encodable"
    assert file.read_bytes() == b"key = 2\n" + tail


async def written(alice: FileAccess, form: str, text: str) -> None:
    """Characters that nothing says how to write, in one way of writing."""
    match form:
        case "append":
            await alice.write_file("a.txt", "添加\n", "append")
        case "truncate":
            await alice.write_file("a.txt", text + "添加\n", "truncate")
        case "patch":
            hunk = "@@ -1,2 +1,2 @@\n-key = 1\n+key = 添加\n two\n"
            await alice.apply_patch(f"--- a/a.txt\n+++ b/a.txt\n{hunk}")
        case _:
            await alice.edit_file("a.txt", [Replacement(search="key = 1", replace="key = 添加")])


@pytest.mark.parametrize("form", ["append", "truncate", "stale edit", "patch"])
async def test_no_way_of_writing_goes_past_it(daemon: RunningDaemon, form: str) -> None:
    file = daemon.workspace / "a.txt"
    before = "key = 1\ntwo\nthree\n# 测试\n".encode("gb18030")
    file.write_bytes(before)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        shown = await alice.read_file("a.txt", line_numbers=False)
        await bob.read_file("a.txt")
        if form == "stale edit":
            await bob.edit_file("a.txt", [Replacement(search="# ", replace="## ")])
            before = before.replace(b"# ", b"## ")
        with pytest.raises(RemoteError) as refused:
            await written(alice, form, shown.text)
        assert refused.value.code == "not_encodable"
    assert file.read_bytes() == before


async def test_what_was_taken_out_comes_back_onto_later_work(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.txt"
    before = "key = 1\ntwo\nthree\nfour\n# 测试\n".encode("gb18030")
    file.write_bytes(before)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        shown = await alice.read_file("a.txt", line_numbers=False)
        gone = await alice.edit_file("a.txt", [Replacement(search=shown.text.splitlines()[-1], replace="# none")])
        assert file.read_bytes() == b"key = 1\ntwo\nthree\nfour\n# none\n"
        await bob.read_file("a.txt")
        await bob.edit_file("a.txt", [Replacement(search="key = 1", replace="key = 2")])
        with pytest.raises(RemoteError) as refused:
            await bob.edit_file("a.txt", [Replacement(search="two", replace="zwölf")])
        assert refused.value.code == "not_encodable"
        assert (await alice.revert(gone.change or "")).status == "applied"
    assert file.read_bytes() == before.replace(b"1", b"2")
    async with daemon.client() as person:
        assert (await person.replay_check()).differences == ()
        assert (await person.journal_rebuild()).first_difference is None


@pytest.mark.parametrize(
    ("content", "codec", "why"),
    [
        pytest.param("key = 添加\n# Привет мир\n", "cp1251", "not certain", id="not certain"),
        pytest.param("key = 日\n# Größe\n", "cp1252", "cannot hold", id="not in the encoding"),
    ],
)
async def test_a_person_sees_it_as_an_agent_does(daemon: RunningDaemon, content: str, codec: str, why: str) -> None:
    file = daemon.workspace / "a.txt"
    tail = content.splitlines(keepends=True)[1].encode(codec)
    file.write_bytes(b"key = 1\n" + tail)
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        await alice.read_file("a.txt")
        await bob.read_file("a.txt")
        await alice.edit_file("a.txt", [Replacement(search="key = 1", replace="key = 2")])
        late = await bob.edit_file("a.txt", [Replacement(search="key = 1", replace="key = 3")])
        assert late.conflict is not None, late
        (waiting,) = (await person.list_conflicts()).conflicts
        on = waiting.current_version
        with pytest.raises(RemoteError) as refused:
            await person.resolve_conflict(late.conflict, "content", content=content, on=on, approver=code)
        assert refused.value.code == "not_encodable"
        assert why in str(refused.value)
        assert file.read_bytes() == b"key = 2\n" + tail
        resolved = await person.resolve_conflict(late.conflict, "proposed", approver=code)
        assert resolved.status == "applied"
    assert file.read_bytes() == b"key = 3\n" + tail


async def test_a_file_that_is_saved_as_utf_8_takes_anything(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.txt"
    file.write_bytes("key = 1\n# 测试\n".encode("gb18030"))
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        await alice.edit_file("a.txt", [Replacement(search="key = 1", replace="key = 2")])
        file.write_bytes("key = 2\n# 测试\n".encode())
        await alice.read_file("a.txt")
        await alice.edit_file("a.txt", [Replacement(search="key = 2", replace="key = 添加")])
    assert file.read_bytes() == "key = 添加\n# 测试\n".encode()


async def test_what_enough_speaks_for_takes_what_it_can_hold(daemon: RunningDaemon) -> None:
    cases = {"latin-1": ("Größe", "É"), "cp1252": ("Größe “x”", "é")}
    async with daemon.client("alice") as alice:
        for codec, (word, more) in cases.items():
            file = daemon.workspace / f"{codec}.txt"
            file.write_bytes(f"key = 1\n# {word}\n".encode(codec))
            await alice.read_file(file.name)
            await alice.edit_file(file.name, [Replacement(search="key = 1", replace=f"key = {more}")])
            assert file.read_bytes() == f"key = {more}\n# {word}\n".encode(codec)
            await alice.edit_file(file.name, [Replacement(search=f"# {word}", replace="# ")])
            await alice.edit_file(file.name, [Replacement(search="# ", replace=f"# {more}")])
            assert file.read_bytes() == f"key = {more}\n# {more}\n".encode(codec)


async def test_one_damaged_line_leaves_the_others_as_they_are(daemon: RunningDaemon) -> None:
    content = "grüße\n".encode() + b"bad \xff line\nend\n"
    (daemon.workspace / "a.txt").write_bytes(content)
    async with daemon.client("alice") as alice:
        text = await alice.read_file("a.txt", line_numbers=False)
        assert (text.text, text.encoding) == ("grüße\nbad \ufffd line\nend\n", "utf-8")
        assert (await alice.search_content("grüße")).total == 1
        await alice.edit_file("a.txt", [Replacement(search="end", replace="ändern")])
    assert (daemon.workspace / "a.txt").read_bytes() == content.replace(b"end", "ändern".encode())
