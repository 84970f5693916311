"""Recognises placeholders for left-out lines: "# ... existing code ...", "// rest unchanged", "[...]"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.locate import LineReplacement, Replacement
from orchestrator.core.text.locate_symbol import SymbolChange

_MARK = re.compile(r"(?:#+|//+|--+|/\*+|<!--+|;+|%+|\{/\*|\"\"\"|'''|\(\*|REM\b)\s*", re.IGNORECASE)
_TRAILING = re.compile(r"\S\s+(?:#|//|--|/\*)\s*(?=\.\.\.|…)")
_HEADING = re.compile(r"#{1,6}\s")
_DOTS = re.compile(r"\.\.\.|…|⋮|\. \. \.")
_SPREAD = re.compile(r"\.\.\.[\w$.]+\s*(?:[,;)}\]]|\Z)")
_AROUND = " \t-=*#.…⋮<>[](){}/:!,'\""
_MANY = (
    r"(?:code|file|text|lines?|methods?|functions?|class(?:es)?|imports?|body|implementation|content|logic|fields?"
    r"|tests?|parts?)"
)
_WORD = re.compile(
    rf"(?:{_MANY}|rest|remainder|existing|remaining|other|previous|same|unchanged|identical|omitted|elided|snip(?:ped)?"
    r"|truncated|keep|more|etc|no|changes?|the|all|of|this|your|here|is|are|was|as|it|to|in|before|above|below|stays?"
    r"|remains?|goes|continues|left|for|brevity|original|previously|ditto|idem|lines? \d+-\d+|\d+(?:-\d+)?)",
    re.IGNORECASE,
)
_SAYS = re.compile(  # what such a line says, in any order of its words
    rf"\b(?:unchanged|omitted|elided|snip(?:ped)?|(?:existing|remaining|previous|other) (?:\w+ )?{_MANY}"
    rf"|(?:rest|remainder) of|(?:rest|remainder|code|body) (?:\w+ )?(?:stays?|remains?|same|omitted|continues|goes)"
    r"|keep (?:the |all )*(?:rest|existing|other|remaining)|no changes?|same as|identical to"
    r"|as (?:it was |in the )?(?:before|above|below|previously|original)\Z"
    r"|\A(?:remains? |stays? |the )*(?:same|identical|truncated|etc|ditto|idem)\Z)\b",
    re.IGNORECASE,
)
_HELD_PLACE = re.compile(  # "<rest>": a word in brackets is no sentence
    r"(?:<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\))(?:\s*\*/|\s*-->)?\Z"
)
_PLACE_WORD = re.compile(r"\b(?:rest|remainder|remaining|existing)\b", re.IGNORECASE)
_BEHIND_DOTS = re.compile(
    r"(?:the |all |other |\d+ )*(?:existing|rest|remaining|remainder|unchanged|other|same|previous|keep|more|omitted"
    r"|snip|code|etc|lines?)\b",
    re.IGNORECASE,
)
_MARKDOWN = (".md", ".markdown", ".mdx")
_DOTS_ARE_CODE = (".py", ".pyi", ".pyx", ".yaml", ".yml", ".r", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp")


def left_out(line: str) -> bool:
    """Whether a line is a placeholder in any file and whatever it replaces: it has dots."""
    text = line.strip()
    if (behind := _TRAILING.search(text)) is not None and not _MARK.match(text):
        return _by_dots(text[behind.end() :], only=True)
    if (mark := _MARK.match(text)) is not None:
        return _by_dots(text[mark.end() :], only=False)
    if text[:1] in {"(", "[", "{"}:
        return _by_dots(text[1:], only=text[-1] not in ")]}")
    return _DOTS.match(text) is not None and not _SPREAD.match(text) and _by_dots(text, only=True)


def left_out_of(line: str, path: str) -> bool:
    """Whether a line that replaces others in this file is a placeholder: words in a comment, or dots alone."""
    text = line.strip()
    if left_out(text):
        return True
    name = path.lower()
    inside = text.strip(_AROUND)
    if _DOTS.match(text) and not inside:
        return not (text.rstrip(",") == "..." and name.endswith(_DOTS_ARE_CODE))
    if name.endswith(_MARKDOWN) and _HEADING.match(text):
        return False
    mark = _MARK.match(text)
    bracketed = (text[:1], text[-1:]) in {("(", ")"), ("[", "]")}
    inside = text[mark.end() :].strip(_AROUND) if mark is not None else inside
    commented = mark is not None and not text.startswith(('"""', "'''"))
    if commented and mark is not None and _HELD_PLACE.match(text, mark.end()) and _PLACE_WORD.search(inside):
        return _only_words(inside)
    return (commented or bracketed) and _only_words(inside) and _SAYS.search(inside) is not None


def _by_dots(text: str, *, only: bool) -> bool:
    """Whether dots and words of that kind are all there is; `only`: there must be words, and nothing else."""
    dots = _DOTS.search(text)
    if dots is None:
        return False
    inside = text.strip(_AROUND)
    if not inside:
        return not only
    words = " ".join(_DOTS.sub(" ", inside).strip(_AROUND).split())
    begins = text.lstrip(_AROUND.replace(".", "").replace("…", ""))
    if not only and _DOTS.match(begins) and _BEHIND_DOTS.match(words):
        return True
    return _only_words(words) and (_BEHIND_DOTS.match(words) is not None or _SAYS.search(words) is not None)


def _only_words(text: str) -> bool:
    return all(_WORD.fullmatch(word) for word in re.split(r"[^\w-]+", text) if word)


Change = Replacement | LineReplacement | SymbolChange

_HINT = "Write out every line; to keep lines, leave them out of what is replaced, and send several short changes."
_HINT_WHOLE = "Send the whole content, every line of it; or change only some lines with edit_file."


def placeholders(lines: Iterable[str], path: str, *, replaces: bool) -> list[str]:
    """The placeholders among new lines of a file. Words without dots count where the lines replace others."""
    return [line for line in lines if (left_out_of(line, path) if replaces else left_out(line))]


def refuse_elided(changes: Sequence[Change], present: Sequence[str], path: str) -> None:
    """Refuse changes with such a line, unless the file, whose lines are given, holds it. Raises ParameterInvalid."""
    for at, change in enumerate(changes, 1):
        name, text = ("content", change.content) if isinstance(change, SymbolChange) else ("replace", change.replace)
        quoted = _lines(change.search) if isinstance(change, Replacement) else []
        replaces = not isinstance(change, Replacement) or bool(Counter(quoted) - Counter(_lines(text)))
        found = placeholders(_lines(text), path, replaces=replaces)
        found = [line for line in found if left_out(line) or line not in quoted]  # dots are refused though quoted, too
        known = set(map(str.strip, present)) if found else set[str]()
        if new := [line for line in found if line not in known]:
            why = f"has {new[0][:60]!r}, a placeholder for lines that were left out (change {at})"
            raise ParameterInvalid(name, why, hint=_HINT)


def refuse_elided_whole(name: str, content: str, present: Sequence[str], path: str) -> None:
    """The same of a whole content that takes the place of these lines; `name` is its parameter's."""
    lines = _lines(content)
    known = set(filter(None, map(str.strip, present)))
    if known <= set(lines):
        return  # no line goes
    if new := [line for line in placeholders(lines, path, replaces=True) if line not in known]:
        why = f"has {new[0][:60]!r}, a placeholder for lines that were left out"
        raise ParameterInvalid(name, why, hint=_HINT_WHOLE)


def _lines(text: str) -> list[str]:
    return list(filter(None, map(str.strip, text.splitlines())))
