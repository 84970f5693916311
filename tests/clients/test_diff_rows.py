"""Diffs in colours."""

from __future__ import annotations

import click
import pytest

from orchestrator.clients.render.diff_rows import diff_lines

HEAD = "--- a/x\n+++ b/x\n"


def red(text: str, *, reverse: bool = False) -> str:
    return click.style(text, fg="red", reverse=reverse or None)


def green(text: str, *, reverse: bool = False) -> str:
    return click.style(text, fg="green", reverse=reverse or None)


def rows(hunk: str, *, inline: bool = True) -> list[str]:
    """Those behind the hunk's head."""
    return list(diff_lines(HEAD + hunk, inline=inline))[3:]


def test_what_changed_of_a_line_is_highlighted() -> None:
    hunk = "@@ -1,2 +1,2 @@\n same\n-return bar(x)\n+return baz(x)\n"
    assert rows(hunk) == [
        " same",
        red("-return ba") + red("r", reverse=True) + red("(x)"),
        green("+return ba") + green("z", reverse=True) + green("(x)"),
    ]
    assert rows(hunk, inline=False) == [" same", red("-return bar(x)"), green("+return baz(x)")]


@pytest.mark.parametrize(
    ("hunk", "shown"),
    [
        pytest.param("@@ -1,2 +1 @@\n-a\n-b\n+ab\n", [red("-a"), red("-b"), green("+ab")], id="not in pairs"),
        pytest.param("@@ -0,0 +1,2 @@\n+++ b/evil\n+# no\n", [green("+++ b/evil"), green("+# no")], id="like a header"),
        pytest.param(
            "@@ -1 +1 @@\n-abc\r\n+abc\n", [red("-abc") + red("\\r", reverse=True), green("+abc")], id="line ends"
        ),
        pytest.param("@@ -1 +1 @@\n-\x1b[2J\n+\u202e\n", [red("-\\x1b[2J"), green("+\\u202e")], id="escapes"),
        pytest.param(
            "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
            [red("-a"), "\\ No newline at end of file", green("+a")],
            id="no newline",
        ),
        pytest.param("@@ -1 +0,0 @@\n-a\n# note\n", [red("-a"), click.style("# note", fg="yellow")], id="a note"),
    ],
)
def test_rows(hunk: str, shown: list[str]) -> None:
    assert rows(hunk) == shown


def test_many_long_pairs_are_not_compared_for_ever() -> None:
    text = "".join(f"{sign}{'ab' * 140}{number}\n" for number in range(500) for sign in "-+")
    hunk = "".join(f"@@ -{n} +{n} @@\n{pair}" for n, pair in enumerate(text.split("\n+"), 1))
    assert len(rows(hunk)) > 500
