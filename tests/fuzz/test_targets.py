"""A few hundred hostile inputs for each target, by hypothesis; any error that is not ours is a defect."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import SEEDS, TARGETS


def damaged(seed: bytes) -> st.SearchStrategy[bytes]:
    """A good input with pieces of it cut, repeated, exchanged or replaced."""
    pieces = st.tuples(st.integers(0, len(seed)), st.integers(0, len(seed)))
    piece = pieces.map(lambda at: seed[min(at) : max(at)]) | st.binary(max_size=4)
    return st.lists(piece, max_size=6).map(b"".join) | st.just(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_it_takes_or_refuses_them(name: str) -> None:
    @example(b"[" * 100_000)
    @example(b'{"a":' * 50_000)
    @example(b"\xff\xfe\x00")
    @example(b"")
    @settings(max_examples=150)
    @given(st.binary(max_size=200) | st.one_of(*map(damaged, SEEDS[name])))
    def hostile(data: bytes) -> None:
        TARGETS[name](data)

    hostile()


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_get_past_the_first_check(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)
