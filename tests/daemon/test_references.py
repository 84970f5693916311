"""find_references through the real daemon: by scope, by syntax, by the word; pages, policy, and what counts as seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.api.relations import FoundReferences
from orchestrator.clients.python import RemoteError, Replacement
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.test_related_files import plant

pytestmark = pytest.mark.anyio

TREE = {
    "shop/tax.py": "# total of all\ndef total(x):\n    return x\n\n\ndef other():\n    def inner(): ...\n    inner()\n",
    "shop/cart.py": "from shop.tax import total\n\n\ndef f(total):\n    return total\n\n\n"
    "def g():\n    return total(1)\n",
    "shop/own.py": "total = 5\nprint(total, 'total')\n",
    "shop/member.py": "from shop import tax\n\nx = tax.total(2)\n",
    "lib.rb": "def total; end\n# total\n",
    "notes.txt": "the total of it\n",
}


def rows(answer: FoundReferences) -> list[str]:
    return [f"{hit.path}:{hit.line} {hit.role}" for hit in answer.hits]


async def test_by_scope_and_imports_where_its_definition_is_named(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    async with daemon.client("alice") as alice:
        found = await alice.find_references("total", path="shop/tax.py")
    assert rows(found) == [
        "shop/cart.py:1 import",
        "shop/cart.py:9 use",
        "shop/member.py:3 member",
        "shop/tax.py:2 definition",
    ]
    assert [hit.inside for hit in found.hits] == [None, "g", "x", "total"]
    assert (found.by_scope, found.by_syntax, found.by_word) == (4, 0, 0)
    assert (found.elsewhere, found.in_comments, found.in_strings) == (4, 1, 1)
    assert (found.total, found.defined_in) == (9, "shop/tax.py")


async def test_of_a_name_that_is_nowhere_the_nearest_are_told(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    async with daemon.client("alice") as alice:
        found = await alice.find_references("totl")
        assert (found.hits, found.total) == ((), 0)
        (told,) = found.warnings
        assert "no file that was searched has the word totl; nearest names: total (" in told
        assert (await alice.find_references("nothing_like_it")).warnings == ()
        block = text_block(found)
        assert block is not None


async def test_without_its_definition_every_language_as_far_as_its_grammar_goes(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    async with daemon.client("alice") as alice:
        found = await alice.find_references("total")
        assert [row for row in rows(found) if not row.startswith("shop/")] == [
            "lib.rb:1 definition",
            "notes.txt:1 word",
        ]
        assert (found.by_scope, found.by_syntax, found.by_word) == (4, 1, 1)
        words = await alice.find_references("total", by="word")
        assert (len(words.hits), words.total, words.by_word) == (12, 12, 6)
        only = await alice.find_references("total", globs=["*.rb"])
        assert rows(only) == ["lib.rb:1 definition"]
        head = (text_block(only) or "").split("\n")[0]
    assert head == (
        "2 lines with the word in 1 file searched; 1 file by syntax; not shown: 1 in comments (by='word' shows them)"
    )


async def test_what_is_defined_in_a_function_is_looked_for_there_alone(daemon: RunningDaemon) -> None:
    plant(daemon, {**TREE, "x.py": "inner()\n"})
    async with daemon.client("alice") as alice:
        found = await alice.find_references("other.inner", path="shop/tax.py")
        assert rows(found) == ["shop/tax.py:7 definition", "shop/tax.py:8 use"]
        with pytest.raises(RemoteError) as missing:
            await alice.find_references("other.outer", path="shop/tax.py")
    assert missing.value.code == "symbol_not_found"
    assert missing.value.details["nearest"]


async def test_methods_of_one_name_are_all_shown_or_told_apart(daemon: RunningDaemon) -> None:
    own = "    def run(self):\n        return 1\n\n\n"
    plant(daemon, {"m.py": f"class A:\n{own}class B:\n{own}", "n.py": "from m import B\n\nB().run()\n"})
    async with daemon.client("alice") as alice:
        both = ["m.py:2 definition", "m.py:7 definition", "n.py:3 member"]
        assert rows(await alice.find_references("run")) == both
        assert rows(await alice.find_references("B.run")) == both[1:]
        assert rows(await alice.find_references("A.run")) == [both[0], both[2]]
        with pytest.raises(RemoteError) as nowhere:
            await alice.find_references("C.run")
        plant(daemon, {"other.py": f"class A:\n{own}"})
        with pytest.raises(RemoteError) as several:
            await alice.find_references("A.run")
        calls = [place["call"] for place in several.value.details["places"]]
    assert nowhere.value.code == "symbol_not_found"
    assert several.value.code == "symbol_ambiguous"
    assert calls == [f'find_references(symbol="A.run", path="{path}")' for path in ("m.py", "other.py")]


JAVA = {
    "O.java": "class O {\n  void run(int a) {}\n  void run(String b) { run(1); }\n"
    "  static class I { void run() {} }\n}\n",
    "P.java": "class P {\n  void f(O o) { o.run(2); }\n  void run() {}\n}\n",
}


@pytest.mark.parametrize("path", [None, "O.java"])
async def test_overloads_are_one_symbol(daemon: RunningDaemon, path: str | None) -> None:
    """Also where no scopes are known; what another class calls so is another thing."""
    plant(daemon, JAVA)
    async with daemon.client("alice") as alice:
        found = await alice.find_references("O.run", path=path)
        assert rows(found) == ["O.java:2 definition", "O.java:3 definition", "P.java:2 member"]
        inner = await alice.find_references("O.I.run", path=path)
        assert [row for row in rows(inner) if "definition" in row] == ["O.java:4 definition"]
        assert inner.elsewhere == 4


async def test_what_another_class_calls_so_is_another_thing(daemon: RunningDaemon) -> None:
    """Unless it may have it from elsewhere; and where a grammar does not tell, it is no answer by scope."""
    own = "{\n  void run() {}\n  void f() { run(); }\n}\n"
    plant(
        daemon, {"O.java": f"class O {own}", "P.java": f"class P {own}class Q extends O {{ void g() {{ run(); }} }}\n"}
    )
    plant(daemon, {"a.cpp": f"struct A {own};\nstruct B {own};\n"})
    async with daemon.client("alice") as alice:
        java = await alice.find_references("O.run")
        cpp = await alice.find_references("A.run", path="a.cpp")
    assert rows(java) == ["O.java:2 definition", "O.java:3 use", "P.java:5 use"]
    assert (java.by_scope, java.by_syntax, cpp.by_scope, cpp.by_syntax) == (2, 0, 0, 1)


async def test_each_of_several_in_a_file_is_offered_with_its_call(daemon: RunningDaemon) -> None:
    plant(daemon, JAVA)
    async with daemon.client("alice") as alice:
        with pytest.raises(RemoteError) as several:
            await alice.find_references("run", path="O.java")
    assert several.value.code == "symbol_ambiguous"
    places = several.value.details["places"]
    assert [(place["line"], place["call"]) for place in places] == [
        (2, 'find_references(symbol="O.run", path="O.java")'),
        (4, 'find_references(symbol="O.I.run", path="O.java")'),
    ]


async def test_pages_go_on_where_the_last_ended(daemon: RunningDaemon) -> None:
    plant(daemon, {f"a{n}.py": "def f(): ...\nf()\nf()\n" for n in range(5)})
    async with daemon.client("alice") as alice:
        whole = rows(await alice.find_references("f"))
        seen: list[str] = []
        cursor, first = None, (await alice.find_references("f", max_results=4)).cursor
        while True:
            page = await alice.find_references("f", max_results=4, cursor=cursor)
            seen += rows(page)
            cursor = page.cursor
            if cursor is None:
                break
        with pytest.raises(RemoteError) as refused:
            await alice.find_references("f", cursor="nonsense")
        with pytest.raises(RemoteError, match="belongs to another search"):
            await alice.find_references("g", cursor=first)
    assert (seen, len(seen)) == (whole, 15)
    assert refused.value.code == "invalid_parameter"


async def test_its_lines_count_as_read(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.find_references("total", path="shop/tax.py")
        await bob.edit_file("shop/cart.py", [Replacement(search="return total(1)", replace="return total(2)")])
        told = await alice.read_file("shop/tax.py")
    assert [notice.path for notice in told.notices] == ["shop/cart.py"]


async def test_secrets_and_long_lines(daemon: RunningDaemon) -> None:
    token = "ghp_" + "a1B2" * 9
    plant(daemon, {"a.py": f"key('{token}')\nx = '{'y' * 3000}' + key('{'z' * 3000}')\n"})
    async with daemon.client("alice") as alice:
        found = await alice.find_references("key")
    assert token not in repr(found)
    assert [hit.line for hit in found.hits] == [1, 2]
    assert len(found.hits[1].text) == 1000
    assert found.hits[1].text[found.hits[1].start :].startswith("key(")


async def test_what_may_not_be_seen_is_left_out(base: Path) -> None:
    daemon = RunningDaemon(base)
    rule = '[[rule]]\nname = "r"\nagents = ["alice"]\nactions = ["read"]\npaths = ["shop/cart.py"]\nverdict = "deny"\n'
    (daemon.state_dir / "policy.toml").write_text(f'name = "p"\ndefault = "allow"\n{rule}reason = "x"\n')
    plant(daemon, TREE)
    with running(base):
        async with daemon.client("alice") as alice:
            found = await alice.find_references("total", path="shop/tax.py")
            assert not re.search("cart", repr(found.hits))
            assert found.files_left_out == 1


def test_on_the_command_line(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    code, shown = cli(daemon, "references", "total", "shop/tax.py")
    assert code == 0
    assert "     9 use in g\t    return total(1)\n" in shown
    assert "4 files by scope; not shown: 4 of other scopes, 1 in comments, 1 in strings" in shown


async def test_lines_of_a_file_that_is_read_by_pieces_are_named_by_their_call(large: RunningDaemon) -> None:
    plant(large, {"app.py": "total = 1\n", "big.js": "var x = 1;\n" * 30_000 + "total();\n"})
    async with large.client("alice") as alice:
        found = await alice.find_references("total")
        assert (rows(found), found.total) == (["app.py:1 definition"], 2)
        call = 'search_content(path="big.js", pattern="total", word=true)'
        assert found.warnings == (
            f"of 1 file that is read by pieces no line is shown: {call} shows those of the first",
        )
        assert [hit.line for hit in (await alice.search_content("total", path="big.js", word=True)).hits] == [30_001]
        (large.workspace / "also.js").write_text("total();\n" * 40_000)
        assert "2 files that are" in (await alice.find_references("total")).warnings[0]
