"""Reviewers that the daemon can ask about a conflict: programs and people.

Begin with `checked.py`: it redacts a request before anybody sees it, counts what the reviewer took, and checks every
answer. `reviewer_pool.py` makes what a policy names, and asks it; `replies.py` reads what comes back, `redaction.py`
takes secrets out and puts them back. A model is a program: `plugins/model_reviewer`.
"""
