"""Paths as callers write them, the one spelling that we keep, and what kind of file a name tells of.

A path here is a string and nothing else: where it leads is the kernel's to say. The name rule
only makes sure that one file has one spelling, and that a spelling can be shown and stored.
Nothing is expanded or decoded: `~`, `$HOME` and `%2e` are letters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from orchestrator.core import errors as e
from orchestrator.core.characters import DEFAULT_IGNORABLE
from orchestrator.core.errors import escaped
from orchestrator.core.ids import WorkspacePath

ROOT = WorkspacePath(".")
COMPONENT_BYTES = 255
PATH_BYTES = 4096
COMPONENTS = 256
"""Directories deeper than that cost every walk over the tree."""

_REFUSED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, format, surrogates, line and paragraph separators
_SHOWN = 200  # characters of a refused path in a message
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")

_PLAIN = re.compile(r"[ !-9;-@\[\]-}]*[!-\-/-9;-@\[\]-}]")  # printable ASCII that folding leaves as it is
_SEPARATOR = re.compile(r"[/\\]")
_SPECIAL = re.compile(r"[*?\[\\]")


# --- as it is written -------------------------------------------------------------------


def parse_path(
    raw: str, *, roots: tuple[str, ...] = (), directory: bool = False, may_create: bool = False
) -> WorkspacePath:
    """The canonical path that a caller means. Raises the PathError family.

    The leniencies, in this order: one of the workspace's own `roots` is cut off an absolute path, by whole
    components; leading `./` are dropped; for a `directory` only, `.` is the root and one trailing `/` is dropped.
    A URL is taken literally: nothing can have that name, and no call that `may_create` makes it.
    `check_new_name` is a separate check of new names.
    """
    if not raw:
        raise e.PathInvalid(raw, "the path is empty", hint="Name a file; '.' is the workspace's root.")
    text = _relative(raw, roots)
    while text.startswith("./"):
        text = text[2:]
    if text in ("", "."):
        if directory:
            return ROOT
        raise e.NotAFile(_shown(raw), "this is the workspace's root, a directory")
    trailing = text.endswith("/")
    if trailing:
        text = text[:-1]
    _check(raw, text, may_create=may_create)
    if trailing and not directory:
        raise e.NotADirectory(_shown(raw), "a file's path does not end with '/'", hint="Drop the trailing '/'.")
    return WorkspacePath(text)


def check_new_name(path: WorkspacePath) -> None:
    """What a name must also keep to when it is created or moved to, so that every system can hold it.

    No component ends with a space or a dot, none holds `:` or a backslash. Raises PathInvalid.
    """
    if path == ROOT:
        return
    for component in path.split("/"):
        if component.endswith((" ", ".")):
            raise e.PathInvalid(_shown(path), "a new name may not end with a space or a dot")
        if ":" in component or "\\" in component:
            raise e.PathInvalid(_shown(path), "a new name may not contain ':' or a backslash")


def valid_name(name: str) -> bool:
    """Whether one name in a directory keeps to the name rule, so that a path may hold it."""
    if not name or "/" in name or name in (".", ".."):
        return False
    if name.isascii():
        return name.isprintable() and len(name) <= COMPONENT_BYTES
    return (
        _bad_character(name) is None
        and len(name.encode()) <= COMPONENT_BYTES
        and unicodedata.is_normalized("NFC", name)
    )


def _relative(raw: str, roots: tuple[str, ...]) -> str:
    """`raw` without the workspace's root; a relative path as it is."""
    if not raw.startswith("/"):
        return raw
    for root in sorted(roots, key=len, reverse=True):
        whole = root.rstrip("/")
        if raw == whole or raw.startswith(whole + "/"):
            return raw[len(whole) + 1 :] or "."
    hint = f"Paths are relative to the workspace, {escaped(roots[0])}." if roots else None
    raise e.PathAbsolute(_shown(raw), "an absolute path outside the workspace", hint=hint or e.PathNotCanonical.hint)


def _check(raw: str, text: str, *, may_create: bool) -> None:
    """The name rule, for a path without its leniencies."""
    shown, components = _shown(raw), text.split("/")
    if (bad := _bad_character(text)) is not None:
        why = f"contains the character U+{ord(bad):04X} ({unicodedata.category(bad)})"
        raise e.PathInvalid(shown, why, hint="Names contain no control, format or line-breaking characters.")
    if "." in components or ".." in components:
        raise e.PathNotCanonical(shown, "contains a '.' or '..' component")
    longest = max(len(component.encode()) for component in components)
    if longest > COMPONENT_BYTES or len(components) > COMPONENTS or len(text.encode()) > PATH_BYTES:
        most = f"{PATH_BYTES} bytes in at most {COMPONENTS} components of at most {COMPONENT_BYTES}"
        raise e.PathTooLong(shown, f"a path has at most {most}")
    if "" in components and not _URL.match(text):
        raise e.PathNotCanonical(shown, "contains an empty component ('//')")
    if "" in components and may_create:
        raise e.PathInvalid(shown, "a URL is no name for a file")
    if "" in components:
        raise e.FileNotFound(shown, "nothing has this name; it is taken literally, not as a URL")
    if not unicodedata.is_normalized("NFC", text):
        hint = "Send it composed (NFC). Where its name on disk is not, no call can name it: a person must rename it."
        raise e.PathNotCanonical(shown, "is not in Unicode form NFC", hint=hint)


def _bad_character(text: str) -> str | None:
    if text.isprintable():
        return None
    return next((c for c in text if unicodedata.category(c) in _REFUSED), None)


def _shown(raw: str) -> str:
    return raw if len(raw) <= _SHOWN else raw[:_SHOWN] + "…"


# --- which names mean the same ----------------------------------------------------------


def fold(component: str) -> str:
    """The form under which two spellings of one protected name are equal; for comparing, never for opening.

    NFKC, casefold, without characters that do not show, without trailing dots and spaces,
    until nothing changes; never empty for what is not. NTFS's short name `git~1` is `.git`.
    """
    folded = component
    while True:
        step = DEFAULT_IGNORABLE.sub("", unicodedata.normalize("NFKC", folded).casefold())
        if not step.isprintable():
            step = "".join(c for c in step if unicodedata.category(c) != "Cf")
        step = step.rstrip(". ") or step or folded
        if step == folded:
            return ".git" if folded == "git~1" else folded
        folded = step


def fold_pattern(text: str) -> str:
    """A glob in the form in which folded paths are compared with it."""
    mark = "!" if text.startswith("!") else ""
    segments = text[len(mark) :].split("/")
    return mark + "/".join(
        fold(s) if s and not _SPECIAL.search(s) else unicodedata.normalize("NFKC", s).casefold() for s in segments
    )


@lru_cache(maxsize=65_536)
def folded_component(component: str) -> tuple[str, ...]:
    """A component's folded form; several where some system reads a separator in it.

    What follows a `:` (an NTFS stream, `.git::$INDEX_ALLOCATION`) is left out.
    """
    if _PLAIN.fullmatch(component):
        return (component,)
    pieces = _SEPARATOR.split(unicodedata.normalize("NFKC", component))
    return tuple(fold(piece.partition(":")[0] or piece) for piece in pieces if piece) or (fold(component),)


def folded(path: str) -> tuple[str, ...]:
    """The folded components of a path."""
    return tuple(piece for component in path.split("/") for piece in folded_component(component))


# --- how paths lie to each other --------------------------------------------------------


def parent(path: WorkspacePath) -> WorkspacePath:
    """The directory that holds it; the root holds itself."""
    return WorkspacePath(path.rpartition("/")[0] or ROOT)


def name(path: WorkspacePath) -> str:
    """The last component; `.` for the root."""
    return path.rpartition("/")[2]


def join(directory: WorkspacePath, entry: str) -> WorkspacePath:
    """The path of a name in a directory."""
    return WorkspacePath(entry if directory == ROOT else f"{directory}/{entry}")


def within(path: WorkspacePath, directory: WorkspacePath) -> bool:
    """Whether a path is the directory or lies under it."""
    return directory in (ROOT, path) or path.startswith(directory + "/")


def ancestors(path: WorkspacePath) -> tuple[WorkspacePath, ...]:
    """The directories above a path, outermost first, without the root and the path itself."""
    return tuple(WorkspacePath(path[:at]) for at, c in enumerate(path) if c == "/")


# --- what kind of file a path names, judged by the name alone -------------------------------

_CODE: Final = frozenset(
    "py pyi js jsx ts tsx mjs cjs go rs java kt kts c h cc cpp cxx hpp cs rb php sh bash zsh swift scala lua sql "
    "html css scss vue svelte pl r jl ex exs erl hs ml clj dart zig nim".split()
)
_DOC: Final = frozenset("md markdown rst txt adoc org tex".split())
_CONFIG: Final = frozenset("toml yaml yml json json5 ini cfg conf properties xml env editorconfig lock".split())
_GENERATED_ENDS: Final = (".min.js", ".min.css", ".map", "_pb2.py", "_pb2_grpc.py", ".pb.go", ".lock", "-lock.json")
_CONVENTIONS: Final = tuple(
    "AGENTS.md CLAUDE.md GEMINI.md CONVENTIONS.md .cursorrules .windsurfrules .clinerules .goosehints "
    "copilot-instructions.md".split()
)
_CURSOR_RULES: Final = "/.cursor/rules"
_ENTRY: Final = (
    *_CONVENTIONS,
    *"README.md README.rst README CONTRIBUTING.md LLM_FILE_ACCESS.md".split(),
    *"pyproject.toml package.json go.mod Cargo.toml CMakeLists.txt Makefile".split(),
)


NAMED_TAGS: Final = ("doc", "config", "code", "test", "generated", "entrypoint")

MOST_TAGS: Final = 20
"""That are set on one file."""

TAG_FORM: Final = r"^[a-z0-9][a-z0-9._-]{0,39}$"
TAG_FORM_TEXT: Final = "small letters, digits and . _ -, at most 40, the first a letter or digit"


def tag_problem(tag: str) -> str | None:
    """Why a tag can't be set on a file, nor named by a rule."""
    if tag in NAMED_TAGS:
        return (
            f"{tag!r} is given by a file's name: it is neither set nor taken off, and a rule names such files by paths"
        )
    return None if re.fullmatch(TAG_FORM, tag) else f"a tag is of {TAG_FORM_TEXT}"


def tags_of(path: WorkspacePath) -> tuple[str, ...]:
    """Of `NAMED_TAGS` those that fit, in this order."""
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
    folder, _, name = path.rpartition("/")
    if name in _ENTRY:
        return (entry_depth(path), _ENTRY.index(name), path)
    if name.endswith(".mdc") and f"/{folder}".endswith(_CURSOR_RULES):
        return (entry_depth(path), len(_CONVENTIONS), path)
    return None


def entry_depth(path: WorkspacePath) -> int:
    """How far below the root the folder is that an entrypoint document speaks of."""
    folder = path.rpartition("/")[0]
    above = f"/{folder}" if folder else ""
    return above.removesuffix(_CURSOR_RULES).removesuffix("/.github").count("/")


def is_convention(path: WorkspacePath) -> bool:
    """Whether a file tells agents how to work, by its name."""
    return path.rpartition("/")[2] in _CONVENTIONS or (path.endswith(".mdc") and entry_rank(path) is not None)


def _is_test(name: str) -> bool:
    stem = name.partition(".")[0]
    return stem.startswith("test_") or stem.endswith("_test") or ".test." in name or ".spec." in name
