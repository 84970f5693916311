"""What kind of file a path names, judged by the name alone."""

from __future__ import annotations

from typing import Final

from orchestrator.core.ids import WorkspacePath

_CODE: Final = frozenset(
    "py pyi js jsx ts tsx mjs cjs go rs java kt kts c h cc cpp cxx hpp cs rb php sh bash zsh swift scala lua sql "
    "html css scss vue svelte pl r jl ex exs erl hs ml clj dart zig nim".split()
)
_DOC: Final = frozenset("md markdown rst txt adoc org tex".split())
_CONFIG: Final = frozenset("toml yaml yml json json5 ini cfg conf properties xml env editorconfig lock".split())
_GENERATED_ENDS: Final = (".min.js", ".min.css", ".map", "_pb2.py", "_pb2_grpc.py", ".pb.go", ".lock", "-lock.json")
_ENTRY: Final = (
    "AGENTS.md CLAUDE.md README.md README.rst README CONTRIBUTING.md LLM_FILE_ACCESS.md "
    "pyproject.toml package.json go.mod Cargo.toml CMakeLists.txt Makefile".split()
)


def tags_of(path: WorkspacePath) -> tuple[str, ...]:
    """Of `doc config code test generated entrypoint` those that fit, in this order."""
    name = path.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    parts = path.lower().split("/")
    tags = []
    if ending in _DOC or name in ("README", "LICENSE", "CHANGELOG"):
        tags.append("doc")
    if ending in _CONFIG or name in ("Makefile", "Dockerfile"):
        tags.append("config")
    if ending in _CODE:
        tags.append("code")
    if any(part in ("test", "tests", "spec", "__tests__") for part in parts[:-1]) or _is_test(parts[-1]):
        tags.append("test")
    if name.endswith(_GENERATED_ENDS) or any(part in ("dist", "build", "generated") for part in parts[:-1]):
        tags.append("generated")
    if name in _ENTRY:
        tags.append("entrypoint")
    return tuple(tags)


def entry_rank(path: WorkspacePath) -> tuple[int, int, str] | None:
    """The rank of an entrypoint document in reading order, the root's first; None for other files."""
    name = path.rpartition("/")[2]
    if name not in _ENTRY:
        return None
    return (path.count("/"), _ENTRY.index(name), path)


def _is_test(name: str) -> bool:
    stem = name.partition(".")[0]
    return stem.startswith("test_") or stem.endswith("_test") or ".test." in name or ".spec." in name
