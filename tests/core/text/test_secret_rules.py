"""The file of forms: each can be compiled, is bounded, and is not looked for where its keywords are not."""

from __future__ import annotations

import re

import pytest

from orchestrator.core.text.secret_rules import SecretRule, secret_rules

RULES = secret_rules("all")
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])+\]")
_POSSESSIVE = re.compile(r"(?:[*+]|\{[0-9]+,?[0-9]*\})\+")
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{[0-9]*,\})")


@pytest.mark.parametrize("rule", RULES, ids=[rule.kind for rule in RULES])
def test_a_form_is_bounded_and_has_what_it_is_found_by(rule: SecretRule) -> None:
    for form in filter(None, (rule.form, rule.near)):
        re.compile(form)
        assert not _UNBOUNDED.search(_POSSESSIVE.sub("", _CLASS.sub("x", form))), form
    assert rule.keywords or rule.near
    assert all(word == word.lower() and not re.search(r"\s", word) for word in rule.keywords)


def test_a_run_without_an_end_is_told_from_one_with() -> None:
    """The check above can fail."""
    assert _UNBOUNDED.search(r"a[b]{3,}c")
    assert _UNBOUNDED.search(r"a.*b")
    assert not _UNBOUNDED.search(r"ab{3,9}c")


def test_kinds_are_names_for_markers() -> None:
    assert len({rule.kind for rule in RULES}) == len(RULES)
    assert all(re.fullmatch(r"[a-z0-9-]{1,40}", rule.kind) for rule in RULES)
    assert len(secret_rules("tokens")) < len(RULES)
