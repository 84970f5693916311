"""Several files, excerpts and summaries within a token budget, through the real daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.raw_socket import Talk
from tests.workspace.vocabularies import vocabulary

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
SHOP = '"""Sells things."""\n\nimport os\n\n\nclass Shop:\n' + "".join(
    f"    def sell_{n}(self):\n        return {n}\n\n" for n in range(300)
)


def numbered(path: Path, lines: int, text: str = "line") -> None:
    path.write_text("".join(f"{text} {n}\n" for n in range(1, lines + 1)))


async def test_several_files_in_one_answer(daemon: RunningDaemon) -> None:
    numbered(daemon.workspace / "a.txt", 3)
    numbered(daemon.workspace / "big.txt", 5000)
    (daemon.workspace / "b.bin").write_bytes(b"\0\1\2")
    async with daemon.client("alice") as alice:
        answer = await alice.read_files(("big.txt", "b.bin", "none.txt", ".env", "a.txt"), max_tokens=1000)
        files = answer.files
        assert [file.path for file in files] == ["big.txt", "b.bin", "none.txt", ".env", "a.txt"]
        assert [file.code for file in files] == [None, "binary_file", "not_found", "denied", None]
        big, small = files[0].text, files[4].text
        assert big is not None
        assert small is not None
        assert (small.end, small.truncated, big.truncated) == (3, False, True)
        assert big.next == f'read_file(path="big.txt", start={big.end + 1})'
        assert 500 < estimate_tokens(big.text) <= 1000  # what the small one leaves is the large one's
        entries = (await alice.journal_query()).entries
        kinds = [entry.kind for entry in entries]
        assert (kinds.count("file_read"), kinds.count("read_refused")) == (2, 3)
        await alice.write_file("a.txt", "mine\n", mode="truncate")  # it was seen whole
        many = [f"f{n}.txt" for n in range(30)]
        rest = await alice.read_files(tuple(many), max_tokens=500)
        assert [file.path for file in rest.files] == many[:5]
        assert rest.next is not None
        assert rest.next.startswith('read_files(paths=["f5.txt"')


LONG_LINES = {"cjk.txt": "日本語テキスト" * 3000 + "\n", "ascii.js": "abcdefg " * 3000 + "\n"}


@pytest.mark.parametrize("tokens", [50, 200])
@pytest.mark.parametrize("name", LONG_LINES)
async def test_a_long_line_is_narrowed_to_the_budget(daemon: RunningDaemon, name: str, tokens: int) -> None:
    line = LONG_LINES[name]
    for path in (name, f"other-{name}"):
        (daemon.workspace / path).write_text(line)
    (daemon.workspace / "two.py").write_text(f"# {line}x = 1\n")
    async with daemon.client("alice") as alice:
        read = await alice.read_file(name, max_tokens=tokens)
        first = await alice.get_excerpt(name, max_tokens=tokens)
        found = await alice.get_excerpt(name, max_tokens=tokens, pattern=line[:4])
        for answer, text in ((read, read.text), (first, first.parts[0].text), (found, found.parts[0].text)):
            assert tokens // 2 < estimate_tokens(text) <= tokens
            assert answer.next_in_line is not None
            column = int(
                answer.next_in_line.removeprefix(f'read_file(path="{name}", start=1, column=').removesuffix(")")
            )
            assert column == (1 if answer is found else len(text.split("\t")[1].split(" … ")[0]) + 1)
        around = await alice.read_enclosing("two.py", line=1, max_tokens=tokens)
        assert (around.start, around.end, around.truncated) == (1, 1, True)
        assert estimate_tokens(around.text) <= tokens
        many = await alice.read_files((name, f"other-{name}"), max_tokens=tokens * 4)
        assert estimate_tokens(text_block(many) or "") <= tokens * 4
        (daemon.workspace / name).write_text("\n")
        await alice.read_file(name)
        (daemon.workspace / name).write_text(line)
        delta = await alice.read_file(name, max_tokens=tokens, delta=True)
        assert delta.changed_since is not None
        assert estimate_tokens(delta.text) <= tokens
        assert delta.next_in_line is not None


async def test_an_excerpt(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    async with daemon.client("alice") as alice:
        first = await alice.get_excerpt("shop.py")
        assert [(part.start, part.end) for part in first.parts] == [(1, 80)]
        assert [one.next for one in first.left_out] == ['read_file(path="shop.py", start=81, end=906)']
        both = await alice.get_excerpt("shop.py", max_lines=10, leave_out="middle")
        assert [(part.start, part.end) for part in both.parts] == [(1, 5), (902, 906)]
        around = await alice.get_excerpt("shop.py", line=100, max_lines=5)
        assert [(part.start, part.end) for part in around.parts] == [(98, 102)]
        found = await alice.get_excerpt("shop.py", pattern="return 2", max_lines=3)
        assert found.parts[0].text == "    13\t    def sell_2(self):\n    14\t        return 2\n    15\t\n"
        assert (found.matches[:3], found.total_matches) == ((14, 68, 71), 111)
        symbol = await alice.get_excerpt("shop.py", symbol="Shop.sell_7", max_tokens=50)
        assert symbol.symbol == "Shop.sell_7"
        assert "def sell_7" in symbol.parts[0].text
        for refused, code in (
            ({"symbol": "Shop.buy"}, "symbol_not_found"),
            ({"pattern": "nowhere"}, "search_not_found"),
            ({"line": 9999}, "invalid_parameter"),
            ({"line": 3, "pattern": "x"}, "invalid_parameter"),
        ):
            with pytest.raises(RemoteError) as error:
                await alice.get_excerpt("shop.py", **refused)
            assert error.value.code == code
        for ask in (alice.get_excerpt, alice.get_overview):
            with pytest.raises(RemoteError) as error:
                await ask("shop.py", symbol="nothing_like_it")
            assert error.value.hint.startswith('No symbol is near. get_overview(path="shop.py")')
        seen = (await alice.session_status()).recent_reads[0].lines
        assert seen.startswith("1-80, 98-102")


async def test_a_summary(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP.replace("import os", f"TOKEN = '{TOKEN}'"))
    async with daemon.client("alice") as alice:
        answer = await alice.summarize_file("shop.py")
        rows = answer.text.splitlines()
        assert rows[0] == '     1\t"""Sells things."""'
        assert any(row.endswith("\tclass Shop:") for row in rows)
        block = text_block(answer)
        assert block is not None
        assert estimate_tokens(block) < 600
        assert answer.tokens > 3000
        assert answer.next == 'get_overview(path="shop.py")'
        assert TOKEN not in block
        assert len((await alice.summarize_file("shop.py", max_tokens=5000)).text) > 3 * len(answer.text)


async def test_tokens_by_a_vocabulary_of_the_operator(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    policy = base / "state/policy.toml"
    ours = f'name = "ours"\nextends = "default"\n[tokens]\nvocabulary = "{vocabulary(base / "v")}"\n'
    policy.write_text(ours)
    with running(base) as daemon:
        numbered(daemon.workspace / "a.txt", 9)
        ended, said = cli(daemon, "summary", "a.txt")
        assert (ended, "35 tokens by tiktoken tiny" in said) == (0, True), said
        async with daemon.client("alice") as alice:
            policy.write_text(ours)
            exact = await alice.summarize_file("a.txt")
            assert (exact.tokens, exact.tokens_by) == (35, "tiktoken tiny")
            policy.write_text(ours.replace("/v", "/none"))
            answer = await alice.summarize_file("a.txt")
            assert (answer.tokens, answer.tokens_by.partition(" (")[0]) == (16, "estimate")


async def test_a_whole_file_over_the_limit_is_summarized(base: Path) -> None:
    (base / "state").mkdir(mode=0o700)
    profile = '[[profile]]\nname = "small"\nagents = ["alice"]\nover_limit = "summary"\nmax_read_lines = 100\n'
    profile += 'tools_off = ["search_content", "list_files"]\n'
    (base / "state/policy.toml").write_text(f'name = "ours"\nextends = "default"\n{profile}')
    with running(base) as daemon:
        (daemon.workspace / "shop.py").write_text(SHOP)
        (daemon.workspace / "binary").write_bytes(b"\0\1\2")
        for toolset, name in (("full", "read_file"), ("filesystem", "read_text_file")):
            socket = Talk(daemon, "alice", "mcp", toolset=toolset)
            socket.call(name, path="binary")
            refused_over_mcp = str(socket.answer())
            assert "it is not text" in refused_over_mcp
            assert "list_files" not in refused_over_mcp, "it is switched off"
            socket.close()
        async with daemon.client("alice") as alice:
            told = await alice.read_file("shop.py")
            assert told.summary
            assert "class Shop:" in told.text
            assert told.next == 'read_file(path="shop.py", start=1, end=100)', "get_overview is of the full toolset"
            assert 'read_file(path="shop.py", start=1, end=100)' in told.warnings[0]
            assert "search_content" not in told.warnings[0]
            assert (await alice.read_file("shop.py", at=told.version_id)).summary
            assert (await alice.read_file("shop.py", start=1, end=100)).end == 100
            with pytest.raises(RemoteError) as refused:
                await alice.read_file("shop.py", start=1, end=906)
            assert refused.value.code == "approval_required"
            async with daemon.client() as person:
                asked, code = refused.value.details["approval"], await daemon.make_approver()
                await person.approve(asked, unseen=True, approver=code)
            assert (await alice.read_file("shop.py", start=1, end=906)).end == 906


def test_on_the_command_line(daemon: RunningDaemon) -> None:
    (daemon.workspace / "shop.py").write_text(SHOP)
    ended, said = cli(daemon, "excerpt", "shop.py", "--line", "100", "--max-lines", "3")
    assert (ended, "def sell_31(self)" in said) == (0, True)
    ended, said = cli(daemon, "summary", "shop.py")
    assert (ended, "class Shop:" in said) == (0, True)
