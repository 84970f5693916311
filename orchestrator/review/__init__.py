"""Reviewers that the daemon can ask about a conflict: programs, plugins, people.

Begin with `checked.py`: it redacts a request before anybody sees it, and checks every answer. `program.py` and
`plugin_reviewer.py` are the two ways to ask; `replies.py` reads what comes back, `budget.py` counts what it took,
`redaction.py` takes secrets out and puts them back. `reviewer_pool.py` makes what a policy names.
A model is a program: `plugins/model_reviewer`.
"""
