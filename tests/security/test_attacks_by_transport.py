"""The tables of attacks through every other transport; on our own socket each table has a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.operations import toolset
from tests.security.hostile_workspace import Caller, HostileWorkspace
from tests.security.test_kinds import LINKS, links
from tests.security.test_paths import CREATES, READS, SPELT_WRONG, WRITES, spelt
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


LOOKS: dict[str, Callable[[str], Mapping[str, Any]]] = {
    "list_files": lambda path: {"path": path},
    "find_files": lambda path: {"path": path, "glob": "*"},
    "file_info": lambda path: {"path": path},
    "blame": lambda path: {"path": path},
    "stale_readers": lambda path: {"path": path},
    "journal_query": lambda path: {"path": path},
}
EVERY = [*LOOKS.items(), *READS.items(), *WRITES.items(), ("write_file", CREATES["write_file"])]
EVERY += [(name, CREATES[name]) for name in ("create_directory", "move_file")]


def test_the_table_has_every_operation_that_takes_a_path() -> None:
    taking = {op.name for op in toolset("full") if {"path", "source"} & {*op.struct.__struct_fields__}}
    assert {name for name, _ in EVERY} == taking


@pytest.mark.parametrize("over", [name for name in NAMES if name.startswith("MCP")])
def test_no_operation_takes_a_way_out(hostile: HostileWorkspace, over: str) -> None:
    """Each spelling through each operation, in one go: the code that our own socket gives, and nothing moves."""
    wrong = []
    with transport(over, hostile) as caller, hostile.untouched():
        for name, made in EVERY:
            for row in SPELT_WRONG:
                path, code = (str(value) for value in row.values)
                answer = caller.call(name, **made(spelt(hostile, path)))
                if answer.code != code:
                    wrong.append((name, path[:40], code, answer.code))
                hostile.tight(answer)
    assert wrong == []
