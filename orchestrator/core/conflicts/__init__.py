"""What is decided about conflicts, without a journal at hand. Begin with sides.py.

- sides: the three texts, the text that choices for their regions give, and what still conflicts later
- resolution: who may resolve, whether a choice still means what it meant, which changes wait for a review,
  who is asked next, and which proposals count
"""
