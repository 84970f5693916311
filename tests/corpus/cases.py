"""All cases of the corpus."""

from __future__ import annotations

from itertools import chain

from tests.corpus import doubtful, generated, handmade

CASES = tuple(chain(generated.cases(), handmade.cases(), doubtful.cases()))
