"""`make fuzz`: atheris on each target in turn, guided by what code an input reaches; a defect ends it and is printed.

Its inputs are kept in .bench/fuzz/TARGET, so that the next run goes on from there; `FUZZ_S` is the seconds for each.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(".bench") / "fuzz"
SECONDS = os.environ.get("FUZZ_S", "60")


def fuzz(name: str) -> None:
    """One target, in a process of its own: the fuzzer ends it."""
    atheris = importlib.import_module("atheris")  # opt-in: no dependency of ours
    with atheris.instrument_imports(include=["orchestrator"]):
        targets = importlib.import_module("tests.fuzz.targets")
    corpus = FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(targets.SEEDS[name]):
        (corpus / f"seed{number}").write_bytes(seed)
    options = [
        f"-max_total_time={SECONDS}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        f"-artifact_prefix={corpus}-",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *options], targets.TARGETS[name])
    atheris.Fuzz()


def main() -> int:
    """All targets, or those that are named; the number of those in which a defect was found."""
    from tests.fuzz.targets import TARGETS

    chosen = sys.argv[1:] or list(TARGETS)
    return sum(subprocess.run([sys.executable, "-m", "tests.fuzz", "one", name]).returncode != 0 for name in chosen)  # noqa: PLW1510


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        fuzz(sys.argv[2])
    else:
        sys.exit(main())
