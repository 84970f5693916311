"""Merges beyond git's, and the checks of a clean merge.

Begin with `automatic_merge.py`.

rules, imports    the merge rules
doubts, ambiguous_hunks        checks of merges that look clean
"""
