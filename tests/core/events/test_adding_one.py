"""A new event is one struct and a golden sample: whoever computes from events' types knows it then."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CONSUMERS = ("tests/core/events/test_every_event.py", "tests/journal/test_every_event.py")


def run(*arguments: str) -> tuple[int, str]:
    """The tests, with one event more than there is."""
    options = ("-p", "tests.core.events.throwaway", "-p", "no:cacheprovider", "-n", "0")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_every_consumer_knows_a_new_event() -> None:
    code, reported = run("-k", "thrown_away", *CONSUMERS)
    assert code == 0, reported
    passed = re.search(r"(\d+) passed", reported)
    tests = sum(path.read_text(encoding="utf-8").count("@every_event") for path in map(ROOT.joinpath, CONSUMERS))
    assert passed is not None
    assert int(passed[1]) >= tests > 10


def test_a_new_event_is_asked_for_its_sample_and_its_place_in_the_reference() -> None:
    samples = "tests/golden/test_events.py::test_every_event_has_a_sample"
    tables = "tests/docs/test_documents.py::test_generated_tables_are_those_of_the_code"
    code, reported = run(samples, tables, "-k", "sample or events")
    assert code == 1, reported
    assert "with a value in every field: ['thrown_away']" in reported
    assert "FAILED tests/docs/test_documents.py::test_generated_tables_are_those_of_the_code[events]" in reported
