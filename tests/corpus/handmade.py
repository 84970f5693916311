from collections.abc import Iterator
from tests.corpus.case import Case
def cases() -> Iterator[Case]:
    yield from ()
