"""What imports mean, by language, in a tree that is a list of paths."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from orchestrator.core.text.import_paths import FAMILIES, mentions, resolved
from orchestrator.core.text.symbols import Import

FILES = {
    "main.py": "",
    "json.py": "",
    "shop/__init__.py": "",
    "shop/parts.py": "",
    "shop/json.py": "",
    "shop/deep/__init__.py": "",
    "shop/deep/end.py": "",
    "src/lib_a/core.py": "",
    "web/app/main.ts": "",
    "web/app/view.tsx": "",
    "web/app/old.js": "",
    "web/app/parts/index.ts": "",
    "web/src/tools/x.ts": "",
    "go/go.mod": "module example.com/shop\n\ngo 1.22\n",
    "go/main.go": "",
    "go/pay/card.go": "",
    "go/pay/cash.go": "",
    "go/pay/card_test.go": "",
    "fmt/fmt.go": "",
    "rs/one/Cargo.toml": "",
    "rs/one/src/main.rs": "",
    "rs/one/src/a.rs": "",
    "rs/one/src/a/b.rs": "",
    "rs/one/src/c/mod.rs": "",
    "rs/two-lib/Cargo.toml": "",
    "rs/two-lib/src/lib.rs": "",
    "rs/two-lib/src/x.rs": "",
    "java/src/main/java/com/shop/Cart.java": "",
    "java/src/main/java/com/shop/pay/Card.java": "",
    "java/src/test/java/com/shop/CartTest.java": "",
    "c/src/main.c": "",
    "c/src/util.h": "",
    "c/include/lib/api.h": "",
    "c/vendor/deep/string.h": "",
}


class Paths:
    """A tree by its paths."""

    def holds(self, path: str) -> bool:
        return path in FILES

    def ending(self, name: str) -> Sequence[str]:
        return [path for path in FILES if path == name or path.endswith(f"/{name}")]

    def inside(self, folder: str) -> Sequence[str]:
        return [path for path in FILES if path.rpartition("/")[0] == folder]

    def folders(self, ending: str) -> Sequence[str]:
        folders = dict.fromkeys(path.rpartition("/")[0] for path in FILES)
        return [path for path in folders if path == ending or path.endswith(f"/{ending}")]

    def text(self, path: str) -> str | None:
        return FILES[path]


@pytest.mark.parametrize(
    ("language", "path", "imported", "found"),
    [
        pytest.param("python", "main.py", Import("shop.parts", 1), ["shop/parts.py"], id="a module"),
        pytest.param("python", "main.py", Import("shop", 1), ["shop/__init__.py"], id="a package"),
        pytest.param("python", "main.py", Import("shop", 1, ("parts",)), ["shop/parts.py"], id="a module of it"),
        pytest.param(
            "python",
            "main.py",
            Import("shop", 1, ("parts", "Cart")),
            ["shop/__init__.py", "shop/parts.py"],
            id="a module and a name of it",
        ),
        pytest.param("python", "main.py", Import("shop.parts", 1, ("Part",)), ["shop/parts.py"], id="a name"),
        pytest.param("python", "shop/parts.py", Import("json", 1), ["json.py"], id="not from inside a package"),
        pytest.param("python", "shop/deep/end.py", Import("..parts", 1, ("x",)), ["shop/parts.py"], id="relative"),
        pytest.param("python", "shop/deep/end.py", Import(".", 1, ("x",)), ["shop/deep/__init__.py"], id="its package"),
        pytest.param("python", "main.py", Import("..parts", 1), [], id="out of the tree"),
        pytest.param("python", "main.py", Import("lib_a.core", 1), ["src/lib_a/core.py"], id="below src"),
        pytest.param("python", "main.py", Import("numpy", 1), [], id="of others"),
        pytest.param("typescript", "web/app/main.ts", Import("./view", 1), ["web/app/view.tsx"], id="without suffix"),
        pytest.param("typescript", "web/app/main.ts", Import("./view.js", 1), ["web/app/view.tsx"], id="suffix built"),
        pytest.param("typescript", "web/app/main.ts", Import("./parts", 1), ["web/app/parts/index.ts"], id="a folder"),
        pytest.param("javascript", "web/app/old.js", Import("../app/main", 1), ["web/app/main.ts"], id="up and down"),
        pytest.param("tsx", "web/app/view.tsx", Import("@/tools/x", 1), ["web/src/tools/x.ts"], id="an alias of src"),
        pytest.param("typescript", "web/app/main.ts", Import("react", 1), [], id="a package of others"),
        pytest.param("typescript", "web/app/main.ts", Import("../../../../x", 1), [], id="far out"),
        pytest.param(
            "go", "go/main.go", Import("example.com/shop/pay", 1), ["go/pay/card.go", "go/pay/cash.go"], id="package"
        ),
        pytest.param("go", "go/main.go", Import("fmt", 1), [], id="the standard library"),
        pytest.param("rust", "rs/one/src/main.rs", Import("crate::a::b::C", 1), ["rs/one/src/a/b.rs"], id="in full"),
        pytest.param("rust", "rs/one/src/main.rs", Import("self::c", 1), ["rs/one/src/c/mod.rs"], id="mod c;"),
        pytest.param("rust", "rs/one/src/a/b.rs", Import("super::Thing", 1), ["rs/one/src/a.rs"], id="super"),
        pytest.param("rust", "rs/one/src/a.rs", Import("self::b", 1), ["rs/one/src/a/b.rs"], id="mod b; of a file"),
        pytest.param(
            "rust",
            "rs/one/src/main.rs",
            Import("crate::{a::{self, b::X}, c}", 1),
            ["rs/one/src/a.rs", "rs/one/src/a/b.rs", "rs/one/src/c/mod.rs"],
            id="a tree of names",
        ),
        pytest.param("rust", "rs/one/src/main.rs", Import("two_lib::x::Y", 1), ["rs/two-lib/src/x.rs"], id="a crate"),
        pytest.param("rust", "rs/one/src/main.rs", Import("std::io", 1), [], id="std"),
        pytest.param(
            "java",
            "java/src/test/java/com/shop/CartTest.java",
            Import("com.shop.Cart", 1),
            ["java/src/main/java/com/shop/Cart.java"],
            id="a class",
        ),
        pytest.param(
            "java",
            "java/src/main/java/com/shop/Cart.java",
            Import("com.shop.pay.Card.LIMIT", 1),
            ["java/src/main/java/com/shop/pay/Card.java"],
            id="a member",
        ),
        pytest.param(
            "java",
            "java/src/main/java/com/shop/Cart.java",
            Import("com.shop.pay", 1, ("*",)),
            ["java/src/main/java/com/shop/pay/Card.java"],
            id="all of a package",
        ),
        pytest.param("java", "java/src/main/java/com/shop/Cart.java", Import("java.util.List", 1), [], id="of Java"),
        pytest.param("c", "c/src/main.c", Import('"util.h"', 1), ["c/src/util.h"], id="beside it"),
        pytest.param("c", "c/src/main.c", Import("<lib/api.h>", 1), ["c/include/lib/api.h"], id="of an include folder"),
        pytest.param("cpp", "c/src/main.c", Import("<string.h>", 1), [], id="of the system, though one is called so"),
        pytest.param("ruby", "a.rb", Import("x", 1), [], id="a language without rules"),
    ],
)
def test_what_an_import_means(language: str, path: str, imported: Import, found: list[str]) -> None:
    assert list(resolved(language, path, imported, Paths())) == found


@pytest.mark.parametrize(
    ("language", "path", "word"),
    [
        pytest.param("python", "shop/parts.py", "parts", id="a module"),
        pytest.param("python", "shop/__init__.py", "shop", id="a package"),
        pytest.param("typescript", "web/app/parts/index.ts", "parts", id="a folder"),
        pytest.param("go", "go/pay/card.go", "pay", id="a Go package"),
        pytest.param("rust", "rs/one/src/c/mod.rs", "c", id="a Rust module"),
        pytest.param("rust", "rs/two-lib/src/lib.rs", "two_lib", id="a crate"),
        pytest.param("c", "c/src/util.h", "util.h", id="a header"),
    ],
)
def test_what_its_imports_mention(language: str, path: str, word: str) -> None:
    assert mentions(language, path) == word


def test_no_language_is_of_two_families() -> None:
    named = [language for family in FAMILIES for language in family]
    assert len(named) == len(set(named))
