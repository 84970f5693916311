"""Where a profile hides all secrets, no answer shows a value of a file of environment variables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

VALUE = "q7Zx"


@pytest.fixture
def large_policy() -> str:
    limits = 'name = "ours"\ndefault = "allow"\n[limits]\nin_memory_bytes = 262144\n'
    return f'{limits}[[profile]]\nname = "all"\nagents = ["class:cloud"]\nredaction = "all"\n'


@pytest.fixture
async def alice(large: RunningDaemon) -> AsyncIterator[FileAccess]:
    async with large.client("alice") as files:
        yield files


def settings(turn: int, length: int) -> str:
    return f"PORT={turn}\nNAME={VALUE * (length // 4)}#{VALUE}{turn}\n"


async def shown(alice: FileAccess, operation: str, **params: Any) -> str:
    """All of an answer, or of a refusal."""
    try:
        return repr(await getattr(alice, operation)(**params))
    except RemoteError as refused:
        return repr((str(refused), refused.details, refused.shown))


@pytest.mark.parametrize("length", [40, 1_500, 6_000], ids="of {} characters".format)
async def test_in_no_answer(large: RunningDaemon, alice: FileAccess, length: int) -> None:
    path, file = "prod.env", large.workspace / "prod.env"
    file.write_text(settings(1, length))
    read = await alice.read_file(path)
    assert "env-value" in read.text
    file.write_text(settings(2, length))
    late: dict[str, Any] = {"changes": [Replacement(search="PORT=1", replace="PORT=3")], "base": read.version_id}
    twice, absent = Replacement(search=VALUE, replace="x"), Replacement(search="PORT=9\nNAME=none", replace="x")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": "a.txt"}),  # it brings the notice of what changed
        *(("read_file", {"path": path, "start": 2, "column": column}) for column in (1, 20)),
        ("search_content", {"pattern": VALUE}),
        ("search_content", {"pattern": "NAME", "path": path}),
        *(("edit_file", {"path": path, "changes": [change]}) for change in (twice, absent)),
        ("edit_file", {"path": path, **late}),
        ("get_diff", {"path": path}),
        ("get_diff", {}),
        ("list_conflicts", {}),
    ]
    (large.workspace / "a.txt").write_text("a\n")
    for operation, params in calls:
        assert VALUE not in await shown(alice, operation, **params), (operation, params)
    async with large.client() as person:
        assert VALUE in (await person.get_diff(path)).diff


async def test_in_no_part_of_a_line(large: RunningDaemon, alice: FileAccess) -> None:
    (large.workspace / "prod.env").write_text(settings(1, 20_000) + "LAST=1\n" * 50_000)
    for column in (1, 900, 9_000):
        assert VALUE not in (await alice.read_file("prod.env", start=2, column=column)).text
