"""`make e2e`: each agent, connected in each form, does its stages and is judged by what is left; one table."""

from __future__ import annotations

import argparse
import sys

from tests.end_to_end.agents.programs import PROGRAMS
from tests.end_to_end.agents.runs import FORMS, Outcome, carried_out

HEAD = ("agent", "form", "version", "steps", "took", "cold starts", "protocol spoken", "notes")


def table(outcomes: list[Outcome]) -> str:
    """The outcomes, one a line, and then what went wrong."""
    rows = [HEAD, *(outcome[:-1] for outcome in outcomes)]
    widths = [*(max(len(row[column]) for row in rows) for column in range(len(HEAD) - 1)), 0]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"{each.agent}, {each.form}: {trouble}" for each in outcomes for trouble in each.troubles]
    return "\n".join(lines)


def main() -> int:
    """0 where every agent that could be had did every step."""
    pairs = sorted({"+".join(pair) for form in FORMS.values() for pair in form.pairs})
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end.agents", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[[], *PROGRAMS, *pairs], help="which; all without it")
    parser.add_argument("--form", choices=tuple(FORMS), help="how they are connected; all three without it")
    parser.add_argument("--keep", action="store_true", help="keep each agent's place, and all that the model was sent")
    parser.add_argument(
        "--cold-starts",
        type=int,
        default=10,
        help="how often each is started where no daemon runs, and must have our tools (10)",
    )
    given = parser.parse_args()
    outcomes = []
    for name in [given.form] if given.form else FORMS:
        for names in [*((program,) for program in FORMS[name].programs), *FORMS[name].pairs]:
            if given.agents and "+".join(names) not in given.agents:
                continue
            print(f"running: {' + '.join(names)}, {name}", file=sys.stderr, flush=True)
            outcomes.append(carried_out(name, names, cold_starts=given.cold_starts, keep=given.keep))
    print(table(outcomes))
    return 1 if any(outcome.troubles for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
