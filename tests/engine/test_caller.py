"""Of a call's parameters the journal keeps where and how, and of what only the size."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import msgspec
import pytest

from orchestrator.api.operation import AnyOperation
from orchestrator.api.operations import BY_NAME, OPERATIONS
from orchestrator.api.parameters import WriteFile
from orchestrator.engine.caller import MOST, Call, arguments_of

MARK = "hunter2-marker"


@pytest.mark.parametrize(
    ("operation", "params", "kept"),
    [
        pytest.param("read_file", {"path": "a.py"}, {"path": "a.py"}, id="defaults are left out"),
        pytest.param(
            "read_file", {"path": "a", "start": 3, "at": "@7"}, {"path": "a", "start": 3, "at": "@7"}, id="at"
        ),
        pytest.param("list_files", {"path": "a\x1b"}, {"path": "a\\x1b"}, id="a path is escaped"),
        pytest.param("list_files", {"globs": ["*.py"]}, {"globs": ["*.py"]}, id="globs"),
        pytest.param(
            "edit_file",
            {"path": "a", "changes": [{"search": "né", "replace": "1234"}], "base": "@3", "reason": "why"},
            {
                "path": "a",
                "changes": [{"search": {"bytes": 3}, "replace": {"bytes": 4}}],
                "base": "@3",
                "reason": {"bytes": 3},
            },
            id="an edit",
        ),
        pytest.param(
            "write_file",
            {"path": "a", "content": "12", "mode": "create", "base": "sha256:" + "0" * 64},
            {"path": "a", "content": {"bytes": 2}, "mode": "create", "base": {"bytes": 71}},
            id="a content and a hash",
        ),
        pytest.param("search_content", {"pattern": "12"}, {"pattern": {"bytes": 2}}, id="a pattern"),
        pytest.param("approve", {"approval": 4, "approver": "c"}, {"approval": 4}, id="code"),
        pytest.param(
            "journal_query",
            {"since": "2026-01-31T10:00:00Z", "until": "when hunter2", "outcome": "applied", "cursor": "@9"},
            {"since": "2026-01-31T10:00:00Z", "until": {"bytes": 12}, "outcome": "applied", "cursor": {"bytes": 2}},
            id="times, and one of a few words",
        ),
        pytest.param(
            "resolve_conflict",
            {"conflict": 4, "choice": "content", "content": "12", "on": "@3"},
            {"conflict": 4, "choice": "content", "content": {"bytes": 2}, "on": "@3"},
            id="every version",
        ),
        pytest.param("file_info", {"path": "x" * 2001}, {"path": {"bytes": 2001}}, id="too long for a path"),
    ],
)
def test_what_is_kept(operation: str, params: dict[str, Any], kept: dict[str, Any]) -> None:
    assert arguments_of(msgspec.convert(params, BY_NAME[operation].struct)) == kept


def test_a_long_list_is_cut() -> None:
    params = msgspec.convert({"globs": [f"*.{n}" for n in range(MOST + 3)]}, BY_NAME["list_files"].struct)
    kept = arguments_of(params)["globs"]
    assert (len(kept), kept[-1]) == (MOST + 1, {"more": 3})


SECRET = ("approver", "new_code")
SILENT = ("content", "patch", "pattern", "text", "base", "id", "cursor", *SECRET)


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        pytest.param(operation, name, id=f"{operation.name} {name}")
        for operation in OPERATIONS
        for name in SILENT
        if name in operation.struct.__struct_fields__ and (operation.name, name) != ("approve", "pattern")  # a glob
    ],
)
def test_no_operation_keeps_a_text_that_could_be_content(operation: AnyOperation, name: str) -> None:
    fields = msgspec.structs.fields(operation.struct)
    params = operation.struct(**{field.name: MARK if field.name == name else None for field in fields})
    assert arguments_of(params) == ({} if name in SECRET else {name: {"bytes": len(MARK)}})


@pytest.mark.anyio
@pytest.mark.parametrize("size", [100, 200_000])
async def test_parameters_are_hashed_once_and_many_beside_the_loop(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, sha256 = list[int](), hashlib.sha256

    def noted(data: bytes) -> Any:
        threads.append(threading.get_ident())
        return sha256(data)

    monkeypatch.setattr(hashlib, "sha256", noted)
    params = WriteFile(path="a.txt", content="x" * size, mode="create")
    call = Call(operation=BY_NAME["write_file"], params=params, size=size)
    assert await call.hashed() == call.digest
    assert [thread == threading.get_ident() for thread in threads] == [size == 100]
