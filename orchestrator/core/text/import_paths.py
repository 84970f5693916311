"""Which files of a workspace an import means, by the rules of its language.

Source roots are guessed: the folders above the importing file, the nearest first, and the usual names in them. What
only a build would know (aliases of a bundler, generated files, include paths) is not found, and so are packages of
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from orchestrator.core.text.symbols import Import

MOST_OF_ONE = 50
"""Files that one import means: those of a package."""

_WEB = ("ts", "tsx", "mts", "cts", "d.ts", "js", "jsx", "mjs", "cjs", "json", "css", "vue", "svelte")
_OF_JS: Final = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_SOURCES = ("", "src", "lib", "app")
_INCLUDES = ("", "include", "src", "inc")
_GO_MODULE = re.compile(r"^module[ \t]+(\S+)", re.MULTILINE)
_RUST_ROOTS = ("mod", "lib", "main")


class Tree(Protocol):
    """The files that the caller may know of, by path."""

    def holds(self, path: str) -> bool:
        """Whether there is such a file."""

    def ending(self, name: str) -> Sequence[str]:
        """The files whose path is this, or ends with a slash and this."""

    def inside(self, folder: str) -> Sequence[str]:
        """The files right in a folder."""

    def folders(self, ending: str) -> Sequence[str]:
        """The folders with files in them whose path is this, or ends with a slash and this."""

    def text(self, path: str) -> str | None:
        """What a file holds; None where that may not be shown."""


def resolved(language: str, path: str, imported: Import, tree: Tree) -> tuple[str, ...]:
    """The files that an import in the file at `path` means, each once; none: it is not of this workspace."""
    found = _BY_LANGUAGE[language](path, imported, tree) if language in _BY_LANGUAGE else ()
    kept = dict.fromkeys(one for one in found if one != path)
    return tuple(kept)[:MOST_OF_ONE]


def mentions(language: str, path: str) -> str:
    """A word that every import of the file at `path` holds, but one that names its folder alone."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    if language in ("c", "cpp"):
        return name
    if language == "go" and folder:
        return folder.rpartition("/")[2]
    if stem in ("__init__", "index") or (language == "rust" and stem in _RUST_ROOTS):
        package = folder.rpartition("/")[0] if stem in ("lib", "main") else folder  # its folder, not `src`
        word = package.rpartition("/")[2] or stem
        return word.replace("-", "_") if language == "rust" else word
    return stem


def _above(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first; the last is the root."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _joined(*parts: str) -> str | None:
    """Parts as one path, with its dots taken out; None: it leads out."""
    names: list[str] = []
    for part in "/".join(filter(None, parts)).split("/"):
        if part == "..":
            if not names:
                return None
            names.pop()
        elif part not in ("", "."):
            names.append(part)
    return "/".join(names)


def _first(candidates: Iterable[str | None], tree: Tree) -> str | None:
    return next((one for one in candidates if one and tree.holds(one)), None)


def _nearest(path: str, found: Sequence[str]) -> str | None:
    """Of several the one that has most folders in common with a path; of these the shortest."""
    here = path.split("/")

    def apart(other: str) -> tuple[int, int, str]:
        common = 0
        for mine, theirs in zip(here, other.split("/"), strict=False):
            if mine != theirs:
                break
            common += 1
        return -common, other.count("/"), other

    return min(found, key=apart, default=None)


# --- by language -------------------------------------------------------------------------


def _python(path: str, imported: Import, tree: Tree) -> Iterator[str]:
    module = imported.source.lstrip(".")
    dots, below = len(imported.source) - len(module), module.replace(".", "/")
    if dots:
        base = path
        for _ in range(dots):
            if not base:
                return
            base = base.rpartition("/")[0]
        bases = [base]
    else:
        roots = [one for one in _above(path) if not tree.holds(_joined(one, "__init__.py") or "")]
        bases = [_joined(one, more) or "" for one in roots for more in _SOURCES]
    for base in bases:
        at = _joined(base, below) or ""
        own = _first((f"{at}.py" if below else None, f"{at}.pyi" if below else None, _joined(at, "__init__.py")), tree)
        inner = [_first(_modules(at, name), tree) for name in imported.names]
        if own or any(inner):
            if own and (not imported.names or None in inner):
                yield own
            yield from filter(None, inner)
            return


def _modules(at: str, name: str) -> tuple[str | None, ...]:
    return _joined(at, f"{name}.py"), _joined(at, f"{name}.pyi"), _joined(at, name, "__init__.py")


def _web(path: str, imported: Import, tree: Tree) -> Iterator[str]:
    source = imported.source.partition("?")[0]
    folder = path.rpartition("/")[0]
    if source.startswith("."):
        bases = [_joined(folder, source)]
    elif source[:2] in ("@/", "~/") or "/" in source[1:]:
        rest = source[2:] if source[:2] in ("@/", "~/") else source
        bases = [_joined(one, more, rest) for one in _above(path) for more in _SOURCES]
    else:
        return
    for base in bases:
        if base is None:
            continue
        stem, dot, suffix = base.rpartition(".")
        other = [stem + one for one in _OF_JS.get(dot + suffix, ())]
        ends = [f"{base}.{one}" for one in _WEB]
        index = [_joined(base, f"index.{one}") for one in _WEB]
        if found := _first([base, *other, *ends, *index], tree):
            yield found
            return


def _go(path: str, imported: Import, tree: Tree) -> Iterator[str]:
    for folder in _above(path):
        manifest = _joined(folder, "go.mod") or ""
        if not tree.holds(manifest):
            continue
        named = _GO_MODULE.search(tree.text(manifest) or "")
        if named is not None and (imported.source == named[1] or imported.source.startswith(f"{named[1]}/")):
            package = _joined(folder, imported.source[len(named[1]) :]) or ""
            yield from (one for one in tree.inside(package) if one.endswith(".go") and not one.endswith("_test.go"))
        return


def _rust(path: str, imported: Import, tree: Tree) -> Iterator[str]:
    folder, _, name = path.rpartition("/")
    own = folder if name.partition(".")[0] in _RUST_ROOTS else path.removesuffix(".rs")
    package = next((one for one in _above(path) if tree.holds(_joined(one, "Cargo.toml") or "")), None)
    crate = _joined(package, "src") or "" if package is not None else folder
    for parts in _use_tree(imported.source):
        match parts[0]:
            case "crate":
                yield from _rust_module(crate, parts[1:], tree)
            case "self":
                yield from _rust_module(own, parts[1:], tree)
            case "super":
                above, rest = own, list(parts)
                while rest and rest[0] == "super":
                    above = above.rpartition("/")[0]
                    rest.pop(0)
                yield from _rust_module(above, rest, tree)
            case other:
                found = list(_rust_module(own, parts, tree, at_least=1)) or list(
                    _rust_module(crate, parts, tree, at_least=1)
                )
                if not found:
                    places = [*tree.folders(other), *tree.folders(other.replace("_", "-"))]
                    packages = [one for one in places if tree.holds(_joined(one, "Cargo.toml") or "")]
                    if (place := _nearest(path, packages)) is not None:
                        found = list(_rust_module(_joined(place, "src") or "", parts[1:], tree))
                yield from found


def _rust_module(folder: str, parts: Sequence[str], tree: Tree, *, at_least: int = 0) -> Iterator[str]:
    """The file of the innermost module that the parts name, from the module whose folder this is on."""
    for upto in range(len(parts), at_least - 1, -1):
        at = _joined(folder, *parts[:upto]) or ""
        own = [_joined(at, f"{root}.rs") for root in _RUST_ROOTS] if not upto else [_joined(at, "mod.rs")]
        if found := _first((f"{at}.rs" if at else None, *own), tree):
            yield found
            return


def _use_tree(source: str) -> Iterator[tuple[str, ...]]:
    """The paths that a `use` names: `a::{b, c::{d, e}}` has three."""
    source = re.sub(r"\s+as\s+\w+", "", source).strip()
    head, brace, rest = source.partition("{")
    prefix = tuple(part.strip() for part in head.split("::") if part.strip() not in ("", "*"))
    if not brace:
        if prefix:
            yield prefix
        return
    depth, start = 0, 0
    body = rest[: rest.rfind("}")] if "}" in rest else rest
    for at, c in enumerate(f"{body},"):
        depth += (c == "{") - (c == "}")
        if c == "," and not depth:
            for inner in _use_tree(body[start:at]) if body[start:at].strip() else ():
                yield prefix + (inner[1:] if inner[0] == "self" and prefix else inner)
            start = at + 1


def _java(path: str, imported: Import, tree: Tree) -> Iterator[str]:
    parts = imported.source.split(".")
    if "*" in imported.names and (folder := _nearest(path, tree.folders("/".join(parts)))) is not None:
        yield from (one for one in tree.inside(folder) if one.endswith(".java"))
        return
    for upto in range(len(parts), max(1, len(parts) - 2), -1):  # a member, or a class in a class
        if found := _nearest(path, tree.ending("/".join(parts[:upto]) + ".java")):
            yield found
            return


def _c(path: str, imported: Import, tree: Tree) -> Iterator[str]:
    source, quoted = imported.source[1:-1], imported.source.startswith('"')
    here = [_joined(path.rpartition("/")[0], source)] if quoted else []
    above = [_joined(one, more, source) for one in _above(path) for more in _INCLUDES]
    found = _first([*here, *above], tree)
    if found is None and (quoted or "/" in source):
        found = _nearest(path, tree.ending(_joined(source) or source))
    if found is not None:
        yield found


_BY_LANGUAGE: Final = {
    "python": _python,
    "go": _go,
    "rust": _rust,
    "java": _java,
    **dict.fromkeys(("javascript", "typescript", "tsx"), _web),
    **dict.fromkeys(("c", "cpp"), _c),
}

FAMILIES: Final = (
    ("python",),
    ("javascript", "typescript", "tsx"),
    ("go",),
    ("rust",),
    ("java",),
    ("c", "cpp"),
)
"""Languages whose files import one another."""
