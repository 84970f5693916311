"""What the shipped plugins do, by themselves."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_reviewer.__main__ import arguments, parse

from orchestrator.core.policy.parse import parse_policy
from orchestrator.core.policy.rules import ProgramSettings
from tests.extensions.packages import PLUGINS


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PLUGINS / name / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


UNION = module("union_reviewer")


def union(base: str, current: str, proposed: str) -> str | None:
    lines = UNION.union(list(base), list(current), list(proposed))
    return None if lines is None else "".join(lines)


@pytest.mark.parametrize(
    ("base", "current", "proposed", "both"),
    [
        pytest.param("", "a", "b", "ab", id="one line each"),
        pytest.param("", "xay", "xby", "xaby", id="what both begin and end with stands once"),
        pytest.param("", "a", "a", "a", id="the same"),
        pytest.param("", "a", "ab", "ab", id="one more"),
        pytest.param("m", "am", "bm", "abm", id="before a line"),
        pytest.param("m", "am", "mb", "amb", id="on either side of a line"),
        pytest.param("m", "n", "mb", None, id="one changed a line"),
        pytest.param("m", "am", "", None, id="one removed a line"),
    ],
)
def test_union(base: str, current: str, proposed: str, both: str | None) -> None:
    assert union(base, current, proposed) == both


@given(st.text("ab", max_size=4), st.text("cd", max_size=4), st.text("ef", max_size=4))
def test_union_loses_nothing_that_either_added(base: str, ours: str, theirs: str) -> None:
    both = union(base, ours + base, base + theirs)
    assert both is not None
    for kept in (base, ours, theirs):
        letters = iter(both)
        assert all(letter in letters for letter in kept)


def test_the_union_reviewer_reads_utf_8_whatever_the_locale() -> None:
    region = {"number": 1, "base": [], "current": ["é"], "proposed": ["ü"]}
    done = subprocess.run(
        [sys.executable, PLUGINS / "union_reviewer" / "union_reviewer.py"],
        input=json.dumps({"regions": [region]}, ensure_ascii=False).encode(),
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["regions"] == [{"region": 1, "lines": ["é", "ü"]}]


def test_the_model_reviewers_policy_is_one() -> None:
    readme = (PLUGINS / "model_reviewer" / "README.md").read_text(encoding="utf-8")
    text = "\n".join(line[4:] for line in readme.splitlines() if line.startswith("    "))
    shown = text[text.index("[[reviewer]]") : text.index("ANTHROPIC_API_KEY=…")]
    (settings,) = parse_policy(f'name = "p"\ndefault = "allow"\n{shown}', source="policy.toml").reviewers
    assert isinstance(settings, ProgramSettings)
    parsed = parse(settings.argv[1:])
    assert (settings.argv[0], parsed.api_key_env) == ("orchestrator-model-reviewer", *settings.env)
    assert {option for option in re.findall(r"--[a-z-]+", arguments().format_help()) if option not in readme} == {
        "--help"
    }


@pytest.mark.parametrize(
    ("name", "setting"),
    [("union_reviewer", 'argv = ["orchestrator-union-reviewer"]'), ("change_log", 'enabled = ["change_log"]')],
)
def test_each_says_what_to_put_into_the_policy(name: str, setting: str) -> None:
    readme = (PLUGINS / name / "README.md").read_text(encoding="utf-8")
    assert setting in readme
    assert f"pip install ./plugins/{name}" in readme
