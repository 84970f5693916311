"""Vectors in memory and in their file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from semantic_index.store import Chunk, Store

numpy: Any = importlib.import_module("numpy")

FIRST, SECOND = (1, 5, "f"), (6, 9, "")


def filled(folder: Path, *, model: str = "m", most: int = 100) -> Store:
    store = Store(folder / "v.db", model, most)
    if not store.contents:
        store.add("x", [FIRST, SECOND], vectors([2, 0], [0, 3]))
        store.add("y", [FIRST], vectors([1, 1]))
    return store


def vectors(*rows: list[float]) -> Any:
    return numpy.asarray(rows, dtype="float32")


def near(store: Store, *row: float, among: set[str] | None = None, most: int = 9) -> list[tuple[str, Chunk, Any]]:
    return store.nearest(vectors(list(row))[0], among, most)


def test_the_nearest_come_first_by_their_direction(tmp_path: Path) -> None:
    store = filled(tmp_path)
    assert near(store, 5, 0) == [("x", FIRST, 1.0), ("y", FIRST, pytest.approx(0.707, abs=0.001))]
    assert near(store, 0, 1, most=1) == [("x", SECOND, 1.0)]
    assert near(store, 5, 0, among={"y"}) == [("y", FIRST, pytest.approx(0.707, abs=0.001))]
    assert near(store, -1, -1) == []
    assert near(store, 0, 0) == []


def test_what_is_removed_is_found_no_more(tmp_path: Path) -> None:
    store = filled(tmp_path)
    near(store, 1, 1)
    store.remove(["x", "none"])
    assert (store.contents, store.chunks) == (["y"], 1)
    assert [digest for digest, _, _ in near(store, 5, 0)] == ["y"]
    store.remove(["y"])
    assert near(store, 5, 0) == []


def test_the_file_serves_the_next_start_of_the_same_model(tmp_path: Path) -> None:
    before = near(filled(tmp_path), 5, 1)
    again = Store(tmp_path / "v.db", "m", 100)
    assert (sorted(again.contents), again.chunks, near(again, 5, 1)) == (["x", "y"], 3, before)
    assert Store(tmp_path / "v.db", "other", 100).contents == []
    assert Store(tmp_path / "v.db", "m", 100).contents == []


@pytest.mark.parametrize("damage", [b"no database at all", b""])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    filled(tmp_path)
    (tmp_path / "v.db").write_bytes(damage)
    store = filled(tmp_path)
    assert len(near(store, 5, 0)) == 2


def test_there_is_no_room_beyond_the_limits(tmp_path: Path) -> None:
    store = filled(tmp_path, most=5)
    assert store.has_room(2, 2)
    assert not store.has_room(3, 2)
    assert not store.has_room(1, 1 << 30)
    assert store.dimensions == 2
