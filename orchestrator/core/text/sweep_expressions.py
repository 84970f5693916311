"""Our patterns as ripgrep's: each fits in every file in which ours matches, and perhaps in others.

The sweep only chooses files, which are decoded and searched again. So what ripgrep can't know of a file may fit more
than it should: bytes beyond ASCII may be a character of another encoding, a damaged one, or a part of one.
"""

from __future__ import annotations

import re

ODD = r"(?-u:[\x80-\xff]{1,3})"
"""A character beyond ASCII of any encoding, or what stands for a damaged one."""

RETURN = r"\r"
"""Of which every file holds one in which a line may end otherwise than by a newline."""

_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
"""RE2's classes, which are of ASCII alone; ripgrep's are of Unicode."""

_SAME = frozenset("afnrtv")
_DOTTED = "iI\u0130\u0131"
"""One letter to Python, two to ripgrep."""

_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_HEX = re.compile(r"x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))")
_PROPERTY = re.compile(r"[pP](?:\{\^?\w+\}|[A-Z])")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_GROUP = re.compile(r"\(\?(?:P?<\w+>|[imsU]*(?:-[isU]+)?[:)])")


class _Untranslatable(Exception):
    """Something that the two read differently."""


def literal_expression(text: str, *, case_sensitive: bool) -> str:
    """For a text as it is written."""
    body = "".join(_character(char, case_sensitive=case_sensitive) for char in text)
    return body if case_sensitive else f"(?i){body}"


def regex_expression(pattern: str, *, case_sensitive: bool) -> str | None:
    """For a regular expression that RE2 takes; None where one is not sure to be found."""
    try:
        body = "".join(_translated(pattern, case_sensitive=case_sensitive))
    except _Untranslatable:
        return None
    return body if case_sensitive else f"(?i){body}"


def _character(char: str, *, case_sensitive: bool) -> str:
    if char.isascii():
        if not case_sensitive and char in "iI":
            return f"[{_DOTTED}]"
        return char if char.isalnum() or char == "_" else f"\\x{{{ord(char):x}}}"
    if char == "\ufffd":
        return rf"(?:\x{{fffd}}|{ODD})"
    forms = {char} if case_sensitive else {char, *(form for form in (char.lower(), char.upper()) if len(form) == 1)}
    if not case_sensitive and char in _DOTTED:
        return f"[{_DOTTED}]"
    single = set[int]()
    for form in forms:
        for codec in ("latin-1", "cp1252"):
            single.update(form.encode(codec, "ignore"))
    odd = "".join(f"|(?-u:\\x{byte:02x})" for byte in sorted(single) if byte >= 0x80)  # ASCII
    return f"(?:\\x{{{ord(char):x}}}{odd})"


def _translated(pattern: str, *, case_sensitive: bool) -> list[str]:  # one branch for each kind of token
    out, at = list[str](), 0
    folds = not case_sensitive or "(?" in pattern
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            piece, at = _escape(pattern, at + 1)
            out.append(piece)
        elif char == "[":
            piece, at = _class(pattern, at)
            out.append(piece)
        elif char == "(":
            group = _GROUP.match(pattern, at)
            if group is None and pattern.startswith("(?", at):
                raise _Untranslatable
            out.append(group[0] if group else "(")
            at = group.end() if group else at + 1
        elif char == "{":
            count = _COUNT.match(pattern, at)
            out.append(count[0] if count else r"\{")
            at = count.end() if count else at + 1
        else:
            if char == ".":
                out.append(f"(?:.|{ODD})")
            elif char in "^$|)*+?":
                out.append(char)
            else:
                out.append(_character(char, case_sensitive=not folds))
            at += 1
    return out


def _escape(pattern: str, at: int) -> tuple[str, int]:  # one return for each kind of escape
    """What follows a backslash outside of a class, and where it ends."""
    char = pattern[at]
    if char.lower() in _ASCII:
        members = _ASCII[char.lower()]
        return (f"[{members}]" if char.islower() else f"(?:[^{members}]|{ODD})"), at + 1
    if char in "bB":
        return r"(?-u:\b)" if char == "b" else "(?:)", at + 1  # between the bytes of a character, too
    if char in "Az":
        return ("^" if char == "A" else "$"), at + 1
    if char in _SAME:
        return f"\\{char}", at + 1
    if (number := _HEX.match(pattern, at)) is not None:
        return f"(?:\\x{{{number[1] or number[2]}}}|{ODD})", number.end()
    if (named := _PROPERTY.match(pattern, at)) is not None:
        return f"(?:\\{named[0]}|{ODD})", named.end()
    if char.isalnum():
        raise _Untranslatable
    return _character(char, case_sensitive=True), at + 1


def _class(pattern: str, start: int) -> tuple[str, int]:
    """A class in brackets, and where it ends."""
    at, first = start + 1, True
    out, odd = ["["], False
    if pattern.startswith("^", at):
        out, odd, at = ["[^"], True, at + 1
    while first or pattern[at] != "]":
        char, first = pattern[at], False
        if (named := _POSIX.match(pattern, at)) is not None:
            out.append(named[0])
            odd, at = odd or "^" in named[0], named.end()
            continue
        if char == "\\":
            piece, beyond, at = _member(pattern, at + 1)
            out.append(piece)
            odd = odd or beyond
            continue
        if char == "-" and pattern.startswith("--", at):
            raise _Untranslatable
        odd = odd or not char.isascii()
        out.append(char if char.isalnum() or char == "-" else f"\\x{{{ord(char):x}}}")
        at += 1
    out.append("]")
    return (f"(?:{''.join(out)}|{ODD})" if odd else "".join(out)), at + 1


def _member(pattern: str, at: int) -> tuple[str, bool, int]:
    """What follows a backslash within a class, whether it holds characters beyond ASCII, and where it ends."""
    char = pattern[at]
    if char.lower() in _ASCII:
        members = _ASCII[char.lower()]
        return (members if char.islower() else f"[^{members}]"), char.isupper(), at + 1
    if char in _SAME:
        return f"\\{char}", False, at + 1
    if (number := _HEX.match(pattern, at)) is not None:
        return f"\\x{{{number[1] or number[2]}}}", True, number.end()
    if (named := _PROPERTY.match(pattern, at)) is not None:
        return f"\\{named[0]}", True, named.end()
    if char.isalnum():
        raise _Untranslatable
    return f"\\x{{{ord(char):x}}}", not char.isascii(), at + 1
