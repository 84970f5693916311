"""Files that are no UTF-8, through a real daemon: read, found, compared, blamed, changed, and kept as what they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from tests.crash.scenarios import POLICY
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.fidelity import CODECS, Cell

pytestmark = pytest.mark.anyio


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    """Under a policy that lets everything through; a test may stop and start it."""
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    daemon.start()
    yield daemon
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log, daemon.log[-4000:]


@pytest.mark.parametrize("encoding", list(CODECS))
async def test_every_answer_shows_the_text(daemon: RunningDaemon, encoding: str) -> None:
    cell = Cell(encoding, "mixed", True, 0o644)
    cell.write(daemon.workspace)
    text = cell.start()
    async with daemon.client("alice") as alice:
        await alice.read_file(cell.path)
        new = f"line 4: {cell.words[1]}"
        two_lines = f"{text.line(3)}\n{text.line(4)}\n"
        edit = [Replacement(search=two_lines, replace=f"{text.line(3)}\n{new}\n")]
        answer = await alice.edit_file(cell.path, edit, preview=True)
        assert answer.diff is not None
        assert f"-{text.line(4)}\n+{new}\n" in answer.diff
        await alice.edit_file(cell.path, edit)
        text = text.with_line(4, new)

        lines = await alice.read_lines(cell.path, start=4, end=5, line_numbers=False)
        assert lines.text == f"{new}\n{text.line(5)}\n"
        for word, rows in ((cell.words[1], [4]), ("line 5:", [5])):
            found = await alice.search_content(word)
            assert [hit.line for hit in found.hits] == rows
            assert found.hits[0].text == text.line(rows[0])
        alone = await alice.search_content("LINE 12", path=cell.path, case_sensitive=False)
        assert [hit.text for hit in alone.hits] == [text.line(12)]
        shown = await alice.get_diff(cell.path)
        assert f"-{cell.start().line(4)}\n+{new}\n" in shown.diff
        over_all = await alice.get_diff()
        assert f"+{new}" in over_all.diff
        blamed = await alice.blame(cell.path)
        assert [(part.start, part.end) for part in blamed.ranges if part.agent == "alice"] == [(4, 4)]
    assert (daemon.workspace / cell.path).read_bytes() == text.bytes


async def test_what_the_encoding_lacks_is_named(daemon: RunningDaemon) -> None:
    cell = Cell("cp1252", "lf", True, 0o644)
    cell.write(daemon.workspace)
    text = cell.start()
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as refused:
            await alice.edit_file(cell.path, [Replacement(search=text.line(5), replace="cost: 5 日")])
        assert refused.value.code == "not_encodable"
        for part in ("U+65E5 (日)", "line 5", "cp1252"):
            assert part in str(refused.value)
        assert refused.value.details["character"] == "U+65E5"
        assert (refused.value.details["line"], refused.value.details["encoding"]) == (5, "cp1252")
        assert "line 5" in refused.value.hint
    assert (daemon.workspace / cell.path).read_bytes() == text.bytes


async def test_a_file_keeps_its_encoding_though_its_signs_go(daemon: RunningDaemon) -> None:
    """Over a restart, an edit by another program, a revert, and a replay."""
    file = daemon.workspace / "a.txt"
    file.write_bytes("price: 5 €\nx\nplain\n".encode("cp1252"))
    async with daemon.client("alice") as alice:
        assert (await alice.file_info("a.txt")).encoding == "cp1252"
        first = await alice.edit_file("a.txt", [Replacement(search="5 €", replace="none")])
        assert file.read_bytes() == b"price: none\nx\nplain\n"
        assert (await alice.file_info("a.txt")).encoding == "cp1252"
    assert daemon.stop() == 0
    file.write_bytes(b"price: none\nx\nplain\nby hand\n")
    daemon.start()
    async with daemon.client("alice") as alice:
        read = await alice.read_file("a.txt", line_numbers=False)
        assert (read.encoding, read.text) == ("cp1252", "price: none\nx\nplain\nby hand\n")
        await alice.edit_file("a.txt", [Replacement(search="plain", replace="“plain”")])
        assert file.read_bytes() == "price: none\nx\n“plain”\nby hand\n".encode("cp1252")
        answer = await alice.revert(first.change or "")
        assert answer.status == "applied"
        assert file.read_bytes() == "price: 5 €\nx\n“plain”\nby hand\n".encode("cp1252")
    async with daemon.client() as person:
        assert (await person.replay_check()).differences == ()
        assert (await person.journal_rebuild()).first_difference is None


async def test_what_another_program_made_utf_8_is_utf_8(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.txt"
    file.write_bytes("größe 1\nx\n".encode("latin-1"))
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        await alice.edit_file("a.txt", [Replacement(search="größe 1", replace="größe 2")])
        file.write_bytes("größe 2\nx\n".encode())
        assert (await alice.read_file("a.txt")).encoding == "utf-8"
        await alice.edit_file("a.txt", [Replacement(search="größe 2", replace="größe 日本")])
        assert file.read_bytes() == "größe 日本\nx\n".encode()


@pytest.mark.parametrize(("data", "search", "replace", "after"), [
    pytest.param("größe äöü 日本\n".encode() + b"\xff\xfe\nb\n", "b", "B",
                 "größe äöü 日本\n".encode() + b"\xff\xfe\nB\n", id="stray bytes in UTF-8"),
    pytest.param("a\x0b\x0c\x85\u2028b\r\nc\rd\n".encode(), "c", "C", "a\x0b\x0c\x85\u2028b\r\nC\rd\n".encode(),
                 id="signs that end no line"),
])  # fmt: skip
async def test_bytes_that_are_no_text_stay(
    daemon: RunningDaemon, data: bytes, search: str, replace: str, after: bytes
) -> None:
    file = daemon.workspace / "a.txt"
    file.write_bytes(data)
    async with daemon.client("alice") as alice:
        read = await alice.read_file("a.txt", line_numbers=False)
        answer = await alice.edit_file("a.txt", [Replacement(search=search, replace=replace)])
        assert file.read_bytes() == after
        again = await alice.read_file("a.txt", line_numbers=False)
        assert again.text == read.text.replace(search, replace, 1)
        await alice.write_file("a.txt", again.text + "more\n", "truncate")
        assert file.read_bytes().startswith(after)
        assert (await alice.rollback(agent="alice")).status == "applied"
        assert answer.change is not None
    assert file.read_bytes() == data


async def test_a_damaged_line_is_changed_whole_or_not_at_all(daemon: RunningDaemon) -> None:
    file = daemon.workspace / "a.txt"
    before = "größe äöü 日本\n".encode() + b"a \xff b\nc\n"
    file.write_bytes(before)
    async with daemon.client("alice") as alice:
        await alice.read_file("a.txt")
        with pytest.raises(RemoteError, match=r"line 2: U\+FFFD stands for bytes that are no character") as refused:
            await alice.edit_file("a.txt", [Replacement(search="a \ufffd b", replace="A \ufffd b")])
        assert refused.value.code == "not_encodable"
        assert "Replace line 2" in refused.value.hint
        assert file.read_bytes() == before
        await alice.edit_file("a.txt", [Replacement(search="a \ufffd b", replace="whole")])
    assert file.read_bytes() == before.replace(b"a \xff b", b"whole")


async def test_a_secret_in_utf_16_is_as_hidden_as_any(daemon: RunningDaemon) -> None:
    """What a path may not show, no encoding shows."""
    (daemon.state_dir / "policy.toml").write_text(
        POLICY + '\n[[rule]]\nname = "no"\nagents = ["*"]\nactions = ["read", "search", "list"]\n'
        'paths = ["hidden/**"]\nverdict = "deny"\n'
    )
    assert daemon.stop() == 0
    folder = daemon.workspace / "hidden"
    folder.mkdir()
    for name, codec in (("a.txt", "utf-16"), ("b.txt", "cp1252")):
        (folder / name).write_bytes("needle – größe\n".encode(codec))
    daemon.start()
    async with daemon.client("alice") as alice:
        for name in ("a.txt", "b.txt"):
            with pytest.raises(RemoteError) as refused:
                await alice.read_file(f"hidden/{name}")
            assert refused.value.code == "denied"
            with pytest.raises(RemoteError):
                await alice.edit_file(f"hidden/{name}", [Replacement(search="needle –", replace="日")])
        found = await alice.search_content("needle")
        assert (found.hits, found.total) == ((), 0)


async def test_a_damaged_line_comes_back_as_it_was(daemon: RunningDaemon) -> None:
    """Onto later work, too: what is undone has its own bytes, never the sign that is shown for them."""
    file = daemon.workspace / "a.txt"
    before = "größe äöü 日本\n".encode() + b"a \xff b\nc\nd\ne\n"
    file.write_bytes(before)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.read_file("a.txt")
        gone = await alice.edit_file("a.txt", [Replacement(search="a \ufffd b", replace="whole")])
        await bob.edit_file("a.txt", [Replacement(search="d\ne", replace="d\nE")])
        answer = await alice.revert(gone.change or "")
    assert file.read_bytes() == before.replace(b"d\ne", b"d\nE")
    assert answer.status == "applied"
