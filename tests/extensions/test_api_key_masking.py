"""The key of a service in the forms in which it may come back."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_reviewer.api_key import MARK, SHORTEST, ApiKeyMasker

KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=SHORTEST, max_size=80)
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper": str.upper,
    "url": quote,
    "whole url": lambda key: quote(key, safe=""),
    "form": quote_plus,
    "json": lambda key: json.dumps(key)[1:-1],
    "slashes": lambda key: key.replace("/", "\\/"),
    "hex": lambda key: key.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@given(key=KEYS, before=st.text(max_size=5), after=st.text(max_size=5))
def test_it_is_found_and_struck_out(form: Callable[[str], str], key: str, before: str, after: str) -> None:
    guard = ApiKeyMasker(key)
    said = form(key)
    assert guard.appears_in([f"{before}{said}{after}"])
    assert guard.appears_in(["x", f"  {said[:5]}", f"  {said[5:]}"])
    struck = guard.mask(f"{before}{said}{after}")
    assert MARK in struck
    assert not guard.appears_in([struck.replace(MARK, "\n")])


@given(key=KEYS, before=st.binary(max_size=9), after=st.binary(max_size=9), url=st.booleans())
def test_it_is_found_within_other_text_in_base64(key: str, before: bytes, after: bytes, url: bool) -> None:
    encoded = (base64.urlsafe_b64encode if url else base64.b64encode)(before + key.encode() + after).decode()
    guard = ApiKeyMasker(key)
    assert guard.appears_in([encoded])
    assert MARK in guard.mask(encoded)


@pytest.mark.parametrize(("key", "text", "struck"), [
    pytest.param("", "any text", "any text", id="no key"),
    pytest.param("ollama", "Ollama says ollama", "Ollama says [redacted:key]", id="a word"),
    pytest.param("key-12345", "nothing here", "nothing here", id="not there"),
])  # fmt: skip
def test_texts(key: str, text: str, struck: str) -> None:
    assert ApiKeyMasker(key).mask(text) == struck
    assert not ApiKeyMasker(key).appears_in([text])
