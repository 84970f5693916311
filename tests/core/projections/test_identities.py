"""By which tokens an agent may call, and until when."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.core.ids import AgentName
from orchestrator.core.projections.identities import Agent

NOW = 1_000
PLAIN = Agent(AgentName("tess"), "cloud", "new")
ROTATED = msgspec.structs.replace(PLAIN, former_hash="old", former_until=NOW + 1)


@pytest.mark.parametrize(
    ("agent", "token", "opens"),
    [
        pytest.param(PLAIN, "new", True, id="its token"),
        pytest.param(PLAIN, "other", False, id="another token"),
        pytest.param(PLAIN, None, False, id="none, where it has one"),
        pytest.param(Agent(AgentName("tess"), "cloud", None), None, True, id="none, where it has none"),
        pytest.param(Agent(AgentName("tess"), "cloud", None), "new", False, id="one, where it has none"),
        pytest.param(msgspec.structs.replace(PLAIN, revoked=True), "new", False, id="revoked"),
        pytest.param(msgspec.structs.replace(PLAIN, expires_at=NOW), "new", False, id="expired now"),
        pytest.param(msgspec.structs.replace(PLAIN, expires_at=NOW + 1), "new", True, id="not yet expired"),
        pytest.param(ROTATED, "new", True, id="the new one"),
        pytest.param(ROTATED, "old", True, id="the former one within its grace"),
        pytest.param(msgspec.structs.replace(ROTATED, former_until=NOW), "old", False, id="the former one, late"),
        pytest.param(msgspec.structs.replace(ROTATED, expires_at=NOW), "old", True, id="the new one alone expired"),
        pytest.param(msgspec.structs.replace(ROTATED, revoked=True), "old", False, id="revoked with its former one"),
    ],
)
def test_which_tokens_open_a_name(agent: Agent, token: str | None, opens: bool) -> None:
    assert agent.is_open_to(token, NOW) is opens
