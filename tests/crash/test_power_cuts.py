"""Power cuts at any call, with any part of what was not synced surviving; driven by hypothesis, seeded.

Whatever was acknowledged before the cut is on the disk that comes up again, byte for byte; what was
not is there wholly or not at all, and the journal says which.
"""

from __future__ import annotations

import anyio
from hypothesis import Phase, event, given, seed, settings
from hypothesis import strategies as st

from tests.crash.power_cuts import (
    KINDS,
    Act,
    folder,
    scenario,
)

ACTS = st.lists(st.sampled_from(KINDS), min_size=1, max_size=5).map(
    lambda kinds: [Act(kind, number) for number, kind in enumerate(kinds)]
)


@seed(20)
@settings(max_examples=60, phases=(Phase.generate, Phase.shrink), deadline=None, database=None)
@given(acts=ACTS, luck=st.integers(0, 2**32))
def test_power_cuts(acts: list[Act], luck: int) -> None:
    with folder() as base:
        event(anyio.run(scenario, base, acts, luck))
