"""The clock, chance, and the key that signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Step = Callable[[str], None]
"""Called by name between any two steps of a durable change. The shipped one does nothing;
a crash test's one ends the process."""


class Clock(Protocol):
    """Wall time, for the envelope and for deadlines; and a clock that only measures."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""

    def ticks_us(self) -> int:
        """Microseconds since some moment before the first look; never goes back."""


class Entropy(Protocol):
    """Unguessable bytes: salts, tokens, delimiters, names."""

    def bytes(self, count: int) -> bytes:
        """`count` bytes."""


class Signer(Protocol):
    """The journal's key. Blocking and thread-safe."""

    def sign(self, message: bytes) -> tuple[str, str]:
        """The public key and its signature, in hex (Ed25519); the key is made at first need.

        Raises SigningKeyUnusable.
        """
