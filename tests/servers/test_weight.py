"""Which calls are heavy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.api.operations import BY_NAME
from orchestrator.servers.call_scheduler import HEAVY_BYTES, LARGE_PATCH_BYTES, TREE_FILES, is_by_pieces, is_heavy

SIZES = {"small.txt": 10, "large.txt": HEAVY_BYTES + 1}


@pytest.mark.parametrize(
    ("name", "params", "files", "heavy"),
    [
        pytest.param("read_lines", {"path": "small.txt"}, 0, False, id="a small file"),
        pytest.param("read_lines", {"path": "large.txt", "start": 5}, 0, True, id="a line of a large file"),
        pytest.param("edit_file", {"path": "large.txt", "changes": []}, 0, True, id="an edit of a large file"),
        pytest.param("move_file", {"source": "large.txt", "destination": "b"}, 0, True, id="a move of one"),
        pytest.param("write_file", {"path": "a", "content": "x" * HEAVY_BYTES}, 0, True, id="much to write"),
        pytest.param("apply_patch", {"patch": "x" * LARGE_PATCH_BYTES}, 0, True, id="a long patch"),
        pytest.param("apply_patch", {"patch": "x"}, 0, False, id="a short patch"),
        pytest.param("search_content", {"pattern": "x"}, 0, True, id="a search of the tree"),
        pytest.param("search_content", {"pattern": "x", "path": "small.txt"}, 0, False, id="of a small file"),
        pytest.param("search_content", {"pattern": "x", "path": "large.txt"}, 0, True, id="of a large file"),
        pytest.param("directory_stats", {}, TREE_FILES + 1, True, id="numbers of many files"),
        pytest.param("directory_stats", {}, TREE_FILES, False, id="of fewer"),
        pytest.param("get_diff", {}, 0, True, id="the diff of the tree"),
        pytest.param("rollback", {"agent": "a"}, 0, True, id="a rollback"),
        pytest.param("status", {}, TREE_FILES + 1, False, id="without a path"),
        pytest.param("read_lines", {"path": 5}, 0, False, id="what will be refused"),
    ],
)
def test_weight(name: str, params: dict[str, Any], files: int, heavy: bool) -> None:
    assert is_heavy(BY_NAME[name], json.dumps(params).encode(), SIZES.get, lambda: files) is heavy


@pytest.mark.parametrize(
    ("name", "params", "in_memory", "by_pieces"),
    [
        pytest.param("read_lines", {"path": "large.txt"}, HEAVY_BYTES, True, id="lines of a file that is not held"),
        pytest.param("read_file", {"path": "large.txt"}, HEAVY_BYTES, True, id="a part of it"),
        pytest.param("read_file", {"path": "large.txt"}, HEAVY_BYTES + 1, False, id="of one that is held"),
        pytest.param("read_file", {"path": "gone.txt"}, HEAVY_BYTES, False, id="of none"),
        pytest.param("edit_file", {"path": "large.txt"}, HEAVY_BYTES, False, id="a change"),
        pytest.param("read_file", {"path": 5}, HEAVY_BYTES, False, id="what will be refused"),
    ],
)
def test_by_pieces(name: str, params: dict[str, Any], in_memory: int, by_pieces: bool) -> None:
    assert is_by_pieces(BY_NAME[name], json.dumps(params).encode(), SIZES.get, in_memory) is by_pieces


@pytest.mark.parametrize("params", [b"", b"[]", b"{", b'{"path": "\xff"}', b"null"])
def test_what_is_no_object_is_light(params: bytes) -> None:
    assert not is_heavy(BY_NAME["read_lines"], params, SIZES.get, lambda: 0)


def test_every_operation_is_weighed_by_what_it_takes() -> None:
    """Of every operation that takes a path, by the file there."""
    named = {
        name: member
        for name, operation in BY_NAME.items()
        for member in ("path", "source")
        if operation.takes(member) and operation.weight != "tree"
    }
    assert len(named) > 10
    for name, member in named.items():
        assert is_heavy(BY_NAME[name], json.dumps({member: "large.txt"}).encode(), SIZES.get, lambda: 0), name
        assert not is_heavy(BY_NAME[name], json.dumps({member: "small.txt"}).encode(), SIZES.get, lambda: 0), name
