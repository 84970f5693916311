"""Large contents as splices of another one: carried out, put on top of each other, and merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchestrator.core.content import LargeContent, Splice, SplicedContent

Splices = tuple[Splice, ...]

ToSplice = tuple[LargeContent, Splices]
"""A content that is kept whole, and what is to be made of it."""

_Piece = tuple[int, int] | bytes
"""Bytes of the base, from an offset to before another one; or new ones."""


MOST_SPLICES = 500
"""Of one content; one with more of them, or longer ones, is kept whole."""

MOST_SPLICED_BYTES = 1024 * 1024


def are_few(splices: Sequence[Splice]) -> bool:
    """Whether a content may be kept by them."""
    return len(splices) <= MOST_SPLICES and sum(len(splice.inserted) for splice in splices) <= MOST_SPLICED_BYTES


def root_of(content: LargeContent) -> ToSplice:
    """The content that is kept whole, and what makes this one of it."""
    return (content.base, content.splices) if isinstance(content, SplicedContent) else (content, ())


def size_after(size: int, splices: Iterable[Splice]) -> int:
    """Of a content of so many bytes."""
    return size + sum(len(splice.inserted) - splice.removed for splice in splices)


def spliced(blocks: Iterable[bytes], splices: Sequence[Splice]) -> Iterator[bytes]:
    """A content with splices in it, piece by piece; all of its blocks are taken. Raises ValueError if it is short."""
    source, block, at = iter(blocks), b"", 0
    for splice in splices:
        while at < splice.offset + splice.removed:
            block = block or _next(source)
            part = block[: (splice.offset if at < splice.offset else splice.offset + splice.removed) - at]
            if at < splice.offset:
                yield part
            at, block = at + len(part), block[len(part) :]
        if splice.inserted:
            yield splice.inserted
    if block:
        yield block
    yield from source


def _next(source: Iterator[bytes]) -> bytes:
    block = next(source, b"")
    if not block:
        raise ValueError("the content is shorter than its splices say")
    return block


def composed(first: Sequence[Splice], then: Sequence[Splice], size: int) -> Splices:
    """One list for two, the second of which is of what the first makes of a content of `size` bytes."""
    pieces, at, made = _pieces(first, size), 0, list[_Piece]()
    for splice in then:
        kept, pieces = _cut(pieces, splice.offset - at)
        made += (*kept, splice.inserted)
        _, pieces = _cut(pieces, splice.removed)
        at = splice.offset + splice.removed
    return _splices([*made, *pieces], size)


def merged(base: Sequence[Splice], ours: Sequence[Splice], theirs: Sequence[Splice]) -> Splices | None:
    """What both sides made of the base, all three of the same content; None where they changed one place.

    Places that touch are one, as adjacent lines are for git.
    """
    sides = (base, ours, theirs)
    result: list[Splice] = []
    for start, end in _places(splice for side in sides for splice in side):
        was, our, their = (tuple(splice for splice in side if start <= splice.offset <= end) for side in sides)
        if was != our != their != was:
            return None
        result += their if was == our else our
    return tuple(result)


def _places(splices: Iterable[Splice]) -> list[tuple[int, int]]:
    """From where to where they go; those that touch are one."""
    places: list[tuple[int, int]] = []
    for start, end in sorted((splice.offset, splice.offset + splice.removed) for splice in splices):
        if places and start <= places[-1][1]:
            places[-1] = places[-1][0], max(places[-1][1], end)
        else:
            places.append((start, end))
    return places


def _pieces(splices: Sequence[Splice], size: int) -> list[_Piece]:
    pieces, at = list[_Piece](), 0
    for splice in splices:
        pieces += ((at, splice.offset), splice.inserted)
        at = splice.offset + splice.removed
    return [*pieces, (at, size)]


def _cut(pieces: Sequence[_Piece], count: int) -> tuple[list[_Piece], list[_Piece]]:
    """The first so many bytes, and the others."""
    for number, piece in enumerate(pieces):
        length = len(piece) if isinstance(piece, bytes) else piece[1] - piece[0]
        if count < length:
            here: tuple[_Piece, _Piece]
            if isinstance(piece, bytes):
                here = piece[:count], piece[count:]
            else:
                here = (piece[0], piece[0] + count), (piece[0] + count, piece[1])
            return [*pieces[:number], here[0]], [here[1], *pieces[number + 1 :]]
        count -= length
    if count:
        raise ValueError("a splice is beyond the end of the content")
    return list(pieces), []


def _splices(pieces: Iterable[_Piece], size: int) -> Splices:
    found, at, new = list[Splice](), 0, b""
    for piece in pieces:
        if isinstance(piece, bytes):
            new += piece
        elif piece[0] < piece[1]:
            if piece[0] > at or new:
                found.append(Splice(at, piece[0] - at, new))
            at, new = piece[1], b""
    return (*found, Splice(at, size - at, new)) if at < size or new else tuple(found)
