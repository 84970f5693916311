"""How a call's parameters are read, and what the refusal of wrong ones tells a model to send."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from orchestrator.api.failures import parse_params
from orchestrator.api.operations import BY_NAME, toolset
from orchestrator.api.parameters import CHANGE_FORMS, EditFile, Params, Replacement
from orchestrator.core.errors import CallerError

ONE = EditFile(path="a", changes=(Replacement(search="x", replace="y"),))
CHANGE = {"search": "x", "replace": "y"}


def parsed(operation: str, params: dict[str, Any]) -> Params:
    return parse_params(BY_NAME[operation], msgspec.json.encode(params))


@pytest.mark.parametrize(
    ("operation", "params", "read"),
    [
        pytest.param("edit_file", {"path": "a", "changes": [CHANGE]}, ONE, id="as the schema says"),
        pytest.param("edit_file", {"path": "a", "changes": CHANGE}, ONE, id="one change without its list"),
        pytest.param("edit_file", {"path": "a", "changes": '[{"search":"x","replace":"y"}]'}, ONE, id="a list as text"),
        pytest.param("edit_file", {"path": "a", "changes": '{"search":"x","replace":"y"}'}, ONE, id="a change as text"),
        pytest.param(
            "edit_file", {"file_path": "a", "old_string": "x", "new_string": "y"}, ONE, id="another tool's names"
        ),
    ],
)
def test_forms_that_models_send_are_read(operation: str, params: dict[str, Any], read: Params) -> None:
    assert parsed(operation, params) == read


@pytest.mark.parametrize(
    ("operation", "params", "code", "hint"),
    [
        pytest.param(
            "write_file",
            {"path": "a", "content": "x"},
            "invalid_parameter",
            "Send one of: truncate, append, create.",
            id="a choice is missing",
        ),
        pytest.param(
            "write_file",
            {"path": "a", "content": "x", "mode": "overwrite"},
            "invalid_parameter",
            "Send one of: truncate, append, create.",
            id="a choice that there is not",
        ),
        pytest.param(
            "resolve_conflict",
            {"conflict": 1, "choice": "regions", "regions": ["mine"]},
            "invalid_parameter",
            "Send one of: current, proposed.",
            id="a choice in a list",
        ),
        pytest.param(
            "edit_file",
            {"path": "a"},
            "invalid_parameter",
            f"changes is a list: [{{search, replace}}, …]. {CHANGE_FORMS}",
            id="no changes",
        ),
        pytest.param(
            "edit_file",
            {"path": "a", "changes": "replace x by y"},
            "invalid_parameter",
            f"changes is a list: [{{search, replace}}, …]. {CHANGE_FORMS}",
            id="changes in words",
        ),
        pytest.param(
            "edit_file",
            {"path": "a", "changes": [{"find": "x"}]},
            "unknown_parameter",
            CHANGE_FORMS,
            id="an unknown name in a change",
        ),
        pytest.param(
            "edit_file",
            {"path": "a", "file_path": "b", "changes": [CHANGE]},
            "unknown_parameter",
            "edit_file takes: path, changes, base, supersedes, preview, reason, request_id.",
            id="two paths",
        ),
        pytest.param(
            "edit_file",
            {"path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            "unknown_parameter",
            f"changes is a list: [{{search, replace, expected_count}}, …]. {CHANGE_FORMS}",
            id="a part of a change that has another name",
        ),
        pytest.param(
            "edit_file",
            {"path": "a", "search": "x"},
            "unknown_parameter",
            f"changes is a list: [{{search, replace, expected_count}}, …]. {CHANGE_FORMS}",
            id="half a change without its list",
        ),
        pytest.param(
            "find_files",
            {"pattern": "*.py"},
            "unknown_parameter",
            'Did you mean glob? Send {"glob":"*.py"}',
            id="a name that another operation has",
        ),
        pytest.param(
            "search_content",
            {"pattern": "x", "glob": "a//b"},
            "unknown_parameter",
            'Did you mean globs? Send {"pattern":"x","globs":["a//b"]}',
            id="a list that is sent as one",
        ),
        pytest.param(
            "read_file",
            {"path": "a", "offset": 3, "limit": 4},
            "unknown_parameter",
            "Did you mean start? read_file takes: path, start, end, column, max_tokens, line_numbers, at, delta.",
            id="a name that we have, and one that we lack",
        ),
        pytest.param(
            "read_file",
            {"file_path": "a", "offset": 3},
            "unknown_parameter",
            'Did you mean path? Send {"path":"a","start":3}',
            id="two names of other tools",
        ),
    ],
)
def test_a_refusal_says_what_to_send(operation: str, params: dict[str, Any], code: str, hint: str) -> None:
    with pytest.raises(CallerError) as refused:
        parsed(operation, params)
    assert (refused.value.code, refused.value.hint) == (code, hint)


def test_a_hint_names_only_tools_that_its_reader_has() -> None:
    """The core toolset is the default one; a refusal of its tools sends nobody to a tool beyond it."""
    core = {operation.name for operation in toolset("core")}
    beyond = {operation.name for operation in toolset("full")} - core
    hints = {error.hint for operation in toolset("core") for error in operation.raises}
    assert len(hints) > 20
    assert [hint for hint in hints if beyond & set(re.findall(r"\w+", hint))] == []
