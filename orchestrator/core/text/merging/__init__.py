"""Merges beyond git's, and the checks of a clean merge.

Begin with `automatic_merge.py`.

imports    both sides added imports at one place
doubts, ambiguous_hunks, surroundings    checks of merges that look clean
"""
