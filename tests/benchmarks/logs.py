"""A log of words, with a few lines that searches look for, and a search of it that leaves nothing out."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
UNITS = ("billing", "auth", "search", "gateway", "scheduler", "storage", "mailer")
WORDS = (
    "request response accepted queued worker retry shard cache lookup miss token user session "
    "refresh commit offset partition replica latency budget exceeded handler finished index "
    "segment merge upload download chunk checksum verified lease renewed expired connection pool"
).split()

NEEDLE = "payment gateway rejected transaction for merchant 7731-KESTREL: signature mismatch"
PRESENT = "merchant 7731-KESTREL"
MISSPELT = "gatway rejcted transacton for merchant 7731-KESTREL"
"""Three edits from what is there."""
MISSPELT_LINE = f"2026-03-01T12:00:01.000Z ERROR billing[4242] {NEEDLE}".replace("payment", "paymnt")
"""For those who compare whole lines."""
EVERYWHERE = "2026-03-01T1 payment gatewy"
"""Its first quarter is in every line."""
ABSENT = "zzqx-no-such-token-0417"

BLOCK_LINES = 20_000


def write_log(path: Path, size: int) -> None:
    """Lines of about 100 bytes; one in some 180,000 holds the needle."""
    dice = random.Random(20260301)
    written = number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while written < size:
            block = [_line(dice, number + at) for at in range(BLOCK_LINES)]
            if number // BLOCK_LINES % 9 == 4:
                block[BLOCK_LINES // 2] = f"2026-03-01T12:00:01.000Z ERROR billing[4242] {NEEDLE}"
            written += file.write("\n".join(block) + "\n")
            number += BLOCK_LINES


def _line(dice: random.Random, number: int) -> str:
    second = number // 20
    clock = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{number % 20 * 50:03d}"
    said = " ".join(dice.choices(WORDS, k=5))
    who = f"{dice.choice(LEVELS)} {dice.choice(UNITS)}[{dice.randrange(9999)}]"
    return f"2026-03-01T{clock}Z {who} {said} id={dice.getrandbits(48):012x}"


def lines_like(data: bytes, pattern: bytes, most: int) -> list[int]:
    """The lines, counted from 1, with a passage that is at most so many edits from the pattern: all are looked at.

    For a text that is not empty, and a pattern of more bytes than edits. Bit n of a number stands for the place
    behind byte n; all places are advanced at once, from each character of the pattern to the next (Wu and Manber
    1992, with the text and the pattern exchanged).
    """
    everywhere = (1 << len(data) + 1) - 1
    at = {byte: _places(data, byte) for byte in {*pattern}}
    within = everywhere ^ _places(data, 10) ^ 1
    reached = [everywhere] * (most + 1)
    for byte in pattern:
        before, reached = reached, [reached[0] << 1 & at[byte]]
        for less, same in pairwise(before):
            replaced_or_more = (less | reached[-1]) << 1 & within
            reached.append(same << 1 & at[byte] | replaced_or_more | less)
    found = f"{reached[-1] & everywhere:b}"[::-1].encode()
    numbers, place, line, counted = list[int](), found.find(b"1"), 1, 0
    while place >= 0:
        line, counted = line + data.count(b"\n", counted, place), place
        numbers.append(line)
        end = data.find(b"\n", place)
        place = found.find(b"1", end + 1) if end >= 0 else -1
    return numbers


def _places(data: bytes, byte: int) -> int:
    """Bit n + 1 for each place n of a byte."""
    table = bytes(49 if value == byte else 48 for value in range(256))
    return int(data[::-1].translate(table), 2) << 1
