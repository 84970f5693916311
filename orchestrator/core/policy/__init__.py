"""What agents may do, and how conflicts, edits, leases and reviewers are handled: the operator's policy file.

Begin with `rules.py`, what a policy says, and `evaluate.py`, what it answers to a request. `protected.py` has the
rules that no file switches off, and knows what git would run. `parse.py` reads a file: `tables.py` checks each value
by the type of its field, and knows its line. `advice.py` warns of what a usable file does, `cases.py` tries a
team's table of expected verdicts, `simulate.py` judges past events by another policy.
"""
