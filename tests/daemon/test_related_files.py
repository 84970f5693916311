"""related_files through the real daemon: imports and importers in each language, over levels, within policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.api.relations import Related
from orchestrator.clients.python import RemoteError
from orchestrator.servers.blocks import text_block
from tests.daemon.cli import cli
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

TREE = {
    "main.py": "import os\nfrom shop import parts\nfrom shop.cart import Cart\n",
    "shop/__init__.py": "",
    "shop/parts.py": "import json\n\nX = 1\n",
    "shop/cart.py": "from .parts import X\n",
    "tests/test_parts.py": "from shop.parts import X\n",
    "notes.py": "parts = 'the word alone, parts'\n",
    "web/main.ts": 'import {view} from "./view";\nimport React from "react";\n',
    "web/view.tsx": 'export * from "./parts";\n',
    "web/parts/index.ts": "export const view = 1;\n",
    "go.mod": "module example.com/shop\n",
    "cmd/main.go": 'package main\n\nimport (\n\t"fmt"\n\t"example.com/shop/pay"\n)\n',
    "pay/card.go": "package pay\n",
    "rs/Cargo.toml": '[package]\nname = "rs"\n',
    "rs/src/main.rs": "mod a;\nuse a::b::C;\n",
    "rs/src/a.rs": "pub mod b;\n",
    "rs/src/a/b.rs": "pub struct C;\n",
    "j/src/com/shop/Cart.java": "package com.shop;\nimport com.shop.pay.Card;\nimport java.util.List;\n",
    "j/src/com/shop/pay/Card.java": "package com.shop.pay;\n",
    "c/main.c": '#include <stdio.h>\n#include "util.h"\n',
    "c/util.h": "int f(void);\n",
}


def plant(daemon: RunningDaemon, tree: Mapping[str, str]) -> None:
    for name, text in tree.items():
        path: Path = daemon.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def paths(answer: Related) -> tuple[list[str], list[str]]:
    return [one.path for one in answer.imports], [one.path for one in answer.imported_by]


@pytest.mark.parametrize(
    ("path", "imports", "importers", "others"),
    [
        pytest.param("main.py", ["shop/parts.py", "shop/cart.py"], [], ("os",), id="python, imports"),
        pytest.param(
            "shop/parts.py", [], ["main.py", "shop/cart.py", "tests/test_parts.py"], ("json",), id="python, importers"
        ),
        pytest.param("web/main.ts", ["web/view.tsx"], [], ("react",), id="typescript"),
        pytest.param("web/parts/index.ts", [], ["web/view.tsx"], (), id="typescript, a folder"),
        pytest.param("cmd/main.go", ["pay/card.go"], [], ("fmt",), id="go"),
        pytest.param("pay/card.go", [], ["cmd/main.go"], (), id="go, importers"),
        pytest.param("rs/src/a/b.rs", [], ["rs/src/a.rs", "rs/src/main.rs"], (), id="rust, importers"),
        pytest.param("j/src/com/shop/Cart.java", ["j/src/com/shop/pay/Card.java"], [], ("java.util.List",), id="java"),
        pytest.param("c/util.h", [], ["c/main.c"], (), id="c"),
    ],
)
async def test_what_is_related(
    daemon: RunningDaemon, path: str, imports: list[str], importers: list[str], others: tuple[str, ...]
) -> None:
    plant(daemon, TREE)
    async with daemon.client("alice") as alice:
        answer = await alice.related_files(path)
    assert (*paths(answer), answer.unresolved) == (imports, importers, others)


async def test_over_two_levels_one_side_and_as_text(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    async with daemon.client("alice") as alice:
        deep = await alice.related_files("web/main.ts", depth=2, direction="imports")
        assert [(one.path, one.depth, one.via) for one in deep.imports] == [
            ("web/view.tsx", 1, None),
            ("web/parts/index.ts", 2, "web/view.tsx"),
        ]
        who = await alice.related_files("shop/parts.py", direction="imported_by", depth=2)
        assert paths(who) == ([], ["main.py", "shop/cart.py", "tests/test_parts.py"])
        block = text_block(await alice.related_files("shop/cart.py")) or ""
        assert "imports:\n  shop/parts.py, line 1: .parts\nimported by:\n  main.py, line 3: shop.cart\n" in block
        with pytest.raises(RemoteError) as missing:
            await alice.related_files("absent.py")
        assert missing.value.code == "not_found"


async def test_what_may_not_be_seen_is_not_related(base: Path) -> None:
    daemon = RunningDaemon(base)
    rules = "".join(
        f'[[rule]]\nname = "{action}"\nagents = ["alice"]\nactions = ["{action}"]\npaths = ["{path}"]\n'
        'verdict = "deny"\nreason = "x"\n'
        for action, path in (("list", "shop/parts.py"), ("read", "tests/*"))
    )
    (daemon.state_dir / "policy.toml").write_text(f'name = "p"\ndefault = "allow"\n{rules}')
    plant(daemon, TREE)
    with running(base):
        async with daemon.client("alice") as alice:
            answer = await alice.related_files("shop/cart.py")
            assert (paths(answer), answer.unresolved) == (([], ["main.py"]), (".parts",))
            assert "tests/test_parts.py" not in repr(await alice.related_files("shop/parts.py"))


async def test_all_of_many(daemon: RunningDaemon) -> None:
    plant(daemon, {"a.py": "", **{f"u{n:03}/{'x' * 120}.py": "import a\n" for n in range(90)}})
    async with daemon.client("alice") as alice:
        whole = await alice.related_files("a.py")
    assert len(whole.imported_by) == 90
    assert (whole.left_out, whole.next) == (0, None)


def test_on_the_command_line(daemon: RunningDaemon) -> None:
    plant(daemon, TREE)
    code, shown = cli(daemon, "related", "shop/cart.py")
    assert (code, shown) == (
        0,
        "imports:\n  shop/parts.py, line 1: .parts\nimported by:\n  main.py, line 3: shop.cart\n",
    )
