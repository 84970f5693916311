"""Which parts of a change of many paths wait for one another."""

from __future__ import annotations

import pytest

from orchestrator.core.ids import WorkspacePath
from orchestrator.engine.changes.write_batch import _making_directories, _sharing_directories
from orchestrator.ports.workspace import DiskChange


@pytest.mark.parametrize(
    ("moves", "together"),
    [
        pytest.param({"b/1": "a/1", "d/1": "c/1"}, [{"b/1"}, {"d/1"}], id="directories of their own"),
        pytest.param({"b/1": "a/1", "b/2": "c/2"}, [{"b/1", "b/2"}], id="to the same"),
        pytest.param({"b/1": "a/1", "c/2": "a/2"}, [{"b/1", "c/2"}], id="from the same"),
        pytest.param({"b/1": "a/1", "a/2": "b/2"}, [{"b/1", "a/2"}], id="there and back"),
        pytest.param({"b/1": "a/1", "d/1": "c/1", "d/2": "a/2"}, [{"b/1", "d/1", "d/2"}], id="joined by a third"),
        pytest.param({"1": "a/1", "2": "b/2"}, [{"1", "2"}], id="to the root"),
    ],
)
def test_moves_that_share_a_directory_go_together(moves: dict[str, str], together: list[set[str]]) -> None:
    changes = [
        DiskChange(path=WorkspacePath(path), before=None, after=None, moved_from=WorkspacePath(source))
        for path, source in moves.items()
    ]
    groups: dict[str, set[str]] = {}
    for path, key in _sharing_directories(changes).items():
        groups.setdefault(key, set()).add(path)
    assert list(groups.values()) == together


def test_what_is_not_moved_waits_for_nobody() -> None:
    assert _sharing_directories([DiskChange(path=WorkspacePath("a/1"), before=None, after=None)]) == {}


def test_directories_are_made_before_those_in_them() -> None:
    made = {"a/1": ("a",), "a/b/c/2": ("a/b", "a/b/c"), "a/b/3": (), "d/4": ("d",), "src/e/5": ("src/e",)}
    changes = [
        DiskChange(path=WorkspacePath(path), before=None, after=None, parents=tuple(map(WorkspacePath, parents)))
        for path, parents in made.items()
    ]
    assert _making_directories(changes) == {"a/1": "a", "a/b/c/2": "a", "d/4": "d", "src/e/5": "src/e"}
