"""Texts that are likely to bring a line model into trouble."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

quick = settings(deadline=None, derandomize=True, max_examples=200)

ENDS = ["\n", "\r\n", "\r"]
repetitive = st.sampled_from(["a", "b", "", "}"])
plain_lines = st.lists(
    repetitive | st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=4), max_size=12
)
"""Lines of which many are equal, and some hold what `str.splitlines` would cut at."""
pieces = st.sampled_from(
    [b"a", b"bc", b"", b"\xe9", "é€".encode(), b"\n", b"\r\n", b"\r", b"\x0b\x0c\x1c\xc2\x85", "\u2028".encode()]
)
file_bytes = st.binary(max_size=60) | st.builds(
    lambda bom, parts: bom + b"".join(parts), st.sampled_from([b"", b"\xef\xbb\xbf"]), st.lists(pieces, max_size=20)
)
lf_text = st.lists(st.sampled_from(["a", "b", "ab", " ", "\n", "\n", "é"]), max_size=24).map("".join)
