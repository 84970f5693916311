"""What is left of a hint for a reader who has few tools."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import BaseRequired
from orchestrator.servers.callable_hints import callable_hint

READER = frozenset({"read_file", "path", "start", "end", "edit"})


@pytest.mark.parametrize(
    ("hint", "left"),
    [
        pytest.param("Add a neighbouring line to it.", "Add a neighbouring line to it.", id="names nothing"),
        pytest.param(
            "Add a neighbouring line to it, or set expected_count.", "Add a neighbouring line to it.", id="a parameter"
        ),
        pytest.param(
            BaseRequired.hint, "Read the whole file first (read_file). Then send it again.", id="without a base"
        ),
        pytest.param("list_files or find_files shows what is there.", "", id="tools"),
        pytest.param(
            'Read a part: read_file(path="a. B", start=1, end=9). search_content finds lines by what they hold.',
            'Read a part: read_file(path="a. B", start=1, end=9).',
            id="one that it has, and one that it has not",
        ),
        pytest.param('Read a part: read_file(path="a", max_tokens=9).', "Read a part.", id="with what it lacks"),
        pytest.param("Send list_files(path=…), then go on. Ask a person.", "Ask a person.", id="a sentence goes"),
        pytest.param(
            "See the folder list_files/ and read_lines.py.",
            "See the folder list_files/ and read_lines.py.",
            id="a path",
        ),
    ],
)
def test_what_a_reader_can_call(hint: str, left: str) -> None:
    assert callable_hint(hint, READER) == left
