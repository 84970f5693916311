"""Merges beyond git's, and the checks of a clean merge.

Begin with `automatic_merge.py`.

rule                                     what a merge rule is given, and what it answers
same_change, imports, list_items, definitions    the rules
doubts, ambiguous_hunks, surroundings    checks of merges that look clean
"""
