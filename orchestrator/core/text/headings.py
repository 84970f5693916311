"""The lines of the block below a heading such as `def name` or `class X`."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.text.indent import depth_of

_CLOSERS = ("{", "}", ")", "]")


def below(lines: Sequence[str], headings: Sequence[str]) -> list[range]:
    """The lines, 0-based, at which something below all of these headings may begin; each narrows the one before.

    A heading is a line, or a part of one between word limits. What it opens ends before the first line that
    is indented no deeper, closing brackets apart; a heading that opens nothing reaches to the end of the
    block that it stands in. The heading's own line counts as below it. Empty where one stands nowhere.
    """
    scopes = [range(len(lines))]
    for heading in headings:
        scopes = [_opened(lines, at, scope) for scope in scopes for at in _standing(lines, heading.strip(), scope)]
    return scopes


def contradicts(lines: Sequence[str], headings: Sequence[str], at: int) -> bool:
    """Whether one of these headings stands in the text, but only behind line `at`, 0-based.

    Whoever names it means another place then: git names a line above the hunk, be it the function
    before. Above, any line that holds the heading counts, since git cuts long ones short.
    """
    return any(
        not any(heading in line for line in lines[: at + 1])
        and any(heading in line and _apart(line, heading) for line in lines[at + 1 :])
        for heading in map(str.strip, headings)
    )


def _standing(lines: Sequence[str], heading: str, scope: range) -> list[int]:
    """Where a heading stands: as a whole line if anywhere, else as a part of one."""
    whole = [at for at in scope if lines[at].strip() == heading]
    return whole or [at for at in scope if heading in lines[at] and _apart(lines[at], heading)]


def _apart(line: str, heading: str) -> bool:
    start = line.index(heading)
    around = (line[:start][-1:], line[start + len(heading) :][:1])
    limits = (heading[:1], heading[-1:])
    return not any(_word(one) and _word(other) for one, other in zip(around, limits, strict=True))


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _opened(lines: Sequence[str], at: int, scope: range) -> range:
    depth = depth_of(lines[at])
    following = next((i for i in range(at + 1, scope.stop) if lines[i].strip()), scope.stop)
    opens = following < scope.stop and (depth_of(lines[following]) > depth or lines[following].strip().startswith("{"))
    for i in range(following, scope.stop):
        inner = depth_of(lines[i])
        if not lines[i].strip() or (opens and inner == depth and lines[i].strip().startswith(_CLOSERS)):
            continue
        if inner < depth + opens:
            return range(at, i)
    return range(at, scope.stop)
