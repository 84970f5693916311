"""What is decided about conflicts, without a journal at hand. Begin with sides.py.

- sides: the three texts, and the text that choices for their regions give
- rebase: what still conflicts when the file moves on
- route: which changes wait for a review, and who is asked next
- proposals: whether a reviewer's answer may count
- resolution: who may resolve, and whether a choice still means what it meant
"""
