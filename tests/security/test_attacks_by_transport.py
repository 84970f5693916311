"""The tables of attacks through every other transport; on our own socket each table has a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_workspace import Caller, HostileWorkspace
from tests.security.test_kinds import LINKS, links
from tests.security.test_paths import SPELT_WRONG, spelt
from tests.security.test_protected import DENIED
from tests.security.transports import NAMES, CommandLine, transport

__all__ = ["links"]

CALLS: dict[str, Callable[[str], Mapping[str, Any]]] = {
    "read_file": lambda path: {"path": path},
    "edit_file": lambda path: {"path": path, "changes": [{"search": "outside", "replace": "x"}]},
}


@pytest.fixture(scope="module", params=NAMES)
def caller(request: pytest.FixtureRequest, hostile: HostileWorkspace) -> Iterator[Caller]:
    with transport(request.param, hostile) as made:
        yield made


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(("path", "code"), SPELT_WRONG)
def test_ways_out(hostile: HostileWorkspace, caller: Caller, operation: str, path: str, code: str) -> None:
    if isinstance(caller, CommandLine) and "\0" in path:
        pytest.skip("no argument of a command can hold it")
    hostile.refused(operation, code, caller=caller, **CALLS[operation](spelt(hostile, path)))


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("path", LINKS)
def test_links(hostile: HostileWorkspace, caller: Caller, links: Path, operation: str, path: str) -> None:
    hostile.refused(operation, "symlink_refused", caller=caller, **CALLS[operation](path))


@pytest.mark.parametrize("path", DENIED)
def test_protected_names(hostile: HostileWorkspace, caller: Caller, path: str) -> None:
    answer = caller.call("edit_file", **CALLS["edit_file"](path))
    assert answer.code in ("denied", "path_invalid", "path_not_canonical"), answer.raw[:600]
    hostile.tight(answer)
    assert not (hostile.work / path).exists()
