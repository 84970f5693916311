"""The clock, chance, the key that signs, and long work on texts off the thread that answers everybody."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.answer_space import estimate_tokens
from orchestrator.core.text.references import References, Sought
from orchestrator.core.text.symbols import Outline

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

    def seal(self, message: bytes) -> bytes:
        """A keyed hash that only who has the key can make. Raises SigningKeyUnusable."""

    def sealed(self, message: bytes, seal: bytes) -> bool:
        """Whether `seal` made this of these bytes. Raises SigningKeyUnusable."""


T = TypeVar("T")

OWNER: ContextVar[str] = ContextVar("owner", default="")
"""For whom the present task works: the agent whose call it is, nobody for the daemon itself. Owners take turns."""

LIMIT_S = 10.0
"""Of processor time, for one piece of work: how busy the machine is decides nothing."""


class Workers(Protocol):
    """Does pure work elsewhere."""

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        """The result of `work`, or what it raised; `work` is a `partial` of a function of some module.

        Its arguments and result may be copied. Raises TextTooCostly over `limit_s` or the limit of memory.
        """


class Parser(Protocol):
    """Outlines texts; remembers them by content, in `outlines`."""

    outlines: BoundedCache[Any, Any]

    async def outline(
        self, path: WorkspacePath, digest: Digest, data: bytes, *, compiled: bool = False
    ) -> Outline | None:
        """What a content defines, in the language of the path's name; None where the bytes are no text.

        Without a grammar, or past the limits of time and size, an outline by indentation and headings with
        `parsed` False. Raises nothing: a parser that dies is replaced. `compiled`: of a Python text it also says
        whether the interpreter takes it.
        """

    async def references(self, path: WorkspacePath, data: bytes, sought: Sought) -> References | None:
        """Every occurrence of a name as a word in a text, and what each is; None without a grammar. Not remembered."""


class TokenCount(NamedTuple):
    """How many tokens a text has, and by which method."""

    tokens: int
    method: str = "estimate"  # or "tiktoken NAME", or "estimate (…)" with the reason why not by the vocabulary


class TokenCounter(Protocol):
    """Counts tokens."""

    async def count(self, text: str, vocabulary: str) -> TokenCount:
        """By the vocabulary in a folder; by the estimate without one, or where it can't be used. Raises nothing."""


class Estimate:
    """Knows no vocabulary."""

    async def count(self, text: str, vocabulary: str) -> TokenCount:
        return TokenCount(estimate_tokens(text))


class Cache(Protocol):
    """What can be made anew at any time, kept beyond a restart. Blocking; raises nothing, and may forget all of it."""

    def get(self, name: str) -> bytes | None:
        """What was put there last."""

    def put(self, name: str, data: bytes) -> None:
        """Keep it; what was put longest ago goes."""

    def __len__(self) -> int:
        """How many things are kept."""

    @property
    def held_bytes(self) -> int:
        """What they take."""

    def clear(self) -> None:
        """Forget all of them."""
