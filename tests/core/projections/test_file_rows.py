"""An entry of the registry comes back from its row as it was."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import Signature, digest_of
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.file_rows import FileEntry, FileRow, holds, is_as, is_kept, pack, unpack

NUMBERS = st.integers(-(2**70), 2**70) | st.integers(0, 2**40)
SIGNATURES = st.builds(Signature, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
DIGESTS = st.binary(max_size=3).map(digest_of) | st.just(Digest("sha256:short"))
ENTRIES = st.builds(
    FileEntry,
    st.just(WorkspacePath("a/b")),
    st.integers(1, 2**40).map(Seq),
    st.none() | DIGESTS,
    st.none() | SIGNATURES,
    st.none() | st.integers(0, 0o7777),
    st.booleans(),
    st.none() | st.integers(1, 2**40).map(Seq),
    st.integers(0, 5),
    st.none() | st.sampled_from(("alice", "ü")).map(AgentName),
)


@given(ENTRIES)
def test_an_entry_comes_back(entry: FileEntry) -> None:
    row = pack(entry)
    assert unpack(entry.path, row, entry.reads) == entry
    assert is_kept(row) is entry.kept
    if entry.digest is not None:
        assert holds(row, entry.digest)
    assert not holds(row, digest_of(b"another content"))
    (stored,) = msgspec.json.decode(msgspec.json.encode([row]), type=list[FileRow])
    assert stored == row


@given(ENTRIES, SIGNATURES, st.integers(0, 0o7777))
def test_a_row_is_as_its_entry(entry: FileEntry, signature: Signature, mode: int) -> None:
    row = pack(entry)
    asked = {(signature, mode), (entry.signature or signature, mode), (signature, entry.mode or 0)}
    asked.add((entry.signature or signature, entry.mode or 0))
    for one, other in asked:
        assert is_as(row, one, other) is ((entry.signature, entry.mode) == (one, other))


def test_a_usual_entry_is_small() -> None:
    signature = Signature(12_345, 1_763_856_000_123_456_789, 1_763_856_000_123_456_789, 12_345_678)
    row = pack(FileEntry(WorkspacePath("a"), Seq(7), digest_of(b""), signature, 0o644, kept=True, change=Seq(6)))
    assert isinstance(row, bytes)
    assert len(row) <= 95
