"""Diffs, merges and looks at long lines and large files are made beside the event loop, which answers everybody."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk
from tests.daemon.watched_loop import FOUND

SHOWN = {
    *("unified_diff.document_diff", "unified_diff.unified", "unified_diff.ended", "unified_diff._rows"),
    *("unified_diff._row", "unified_diff._paired", "answer_space.fit", "answer_space.render"),
    *("long_lines.near", "long_lines.window", "long_lines.first_difference", "long_lines.parts_that_differ"),
}
"""What costs as much as an answer shows: a diff is made up to its budget, of hunks that are known."""

MEASURED = {
    *(
        "answer_space.size",
        "answer_space.json_size",
        "costs._weight",
        "answer_space._cut",
        "answer_space.estimate_tokens",
        "answer_space.weight",
    ),
    *("encoding.Document.line_count", "encoding.Document.final_newline", "encoding.Document.text"),
    *("encoding.Document.eol", "encoding.Document.kinds"),
}
"""One pass in C at most."""

LINE = "".join(random.Random(3).choices("abcdefgh ,;()=", k=2 * 1024 * 1024))
LINES = "".join(f"value {number} = {number * 7}\n" for number in range(100_000))


@pytest.mark.parametrize(
    ("text", "mine", "others"),
    [
        pytest.param(LINE, LINE.replace(LINE[10**6 :][:40], "HERE"), LINE[:-20] + "there", id="a line of 2 MB"),
        pytest.param(LINES, LINES.replace("value", "VALUE"), LINES.replace("value", "other"), id="100,000 lines"),
    ],
)
def test_large_texts_are_not_worked_on_in_the_loop(base: Path, text: str, mine: str, others: str) -> None:
    daemon = RunningDaemon(base, module=("-m", "tests.daemon.watched_loop", str(base)))
    (daemon.workspace / "a.txt").write_text(text)
    daemon.start()
    alice, bob = Talk(daemon, "alice"), Talk(daemon, "bob")

    def ask(talk: Talk, operation: str, **params: object) -> dict[str, object]:
        talk.call(operation, path="a.txt", **params)
        answer = talk.answer()
        assert "result" in answer, answer
        result: dict[str, object] = answer["result"]
        return result

    base_version = ask(bob, "read_file")["version_id"]
    change = {"mode": "truncate", "base": base_version}
    assert ask(alice, "write_file", content=mine, preview=True, **change)["status"] == "preview"
    assert ask(alice, "write_file", content=mine, **change)["status"] == "applied"
    quoted = {"search": mine[-30:-10], "replace": "new"}
    assert ask(alice, "edit_file", changes=[quoted], preview=True)["status"] == "preview"
    conflict = ask(bob, "write_file", content=others, **change)
    assert conflict["status"] == "conflict"
    assert "diff" in conflict
    ask(bob, "get_diff")
    bob.call("list_conflicts", conflict=conflict["conflict"], max_tokens=5_000_000)
    assert "result" in bob.answer()
    line = text.split("\n", 1)[0]
    first = {"start": 1, "end": 1, "expect": mine.split("\n", 1)[0], "replace": f"{line[:50]}\n"}
    assert ask(alice, "edit_file", changes=[first])["status"] == "applied"
    for talk in (alice, bob):
        talk.close()
    assert daemon.stop() == 0
    on_loop = set(json.loads((base / FOUND).read_text()))
    assert on_loop, "the daemon was not watched"
    assert sorted(on_loop - SHOWN - MEASURED) == []
