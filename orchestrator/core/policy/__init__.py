"""What agents may do, and how conflicts, edits, leases and reviewers are handled: the operator's policy file.

Begin with `rules.py`, what a policy says, and `evaluate.py`, what it answers to a request. `match.py` finds the
rules for a path, by the globs of `glob_forms.py`; `protected.py` has the rules that no file switches off, and knows
what git would run. `conflict_routes.py` has the tables for conflicts.
`parse.py` reads a file: `tables.py` checks each value by the type of its field, `positions.py` has its line.
"""
