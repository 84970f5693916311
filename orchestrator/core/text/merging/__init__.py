"""Merges beyond git's, and the checks of a clean merge.

Begin with `automatic_merge.py`: it tries the rules on each conflicting region.

same_change, disjoint_symbols, additions, imports, list_items    one rule each
merge_region    what a rule is given, and its result
import_lines, import_lists, quoted_lines, independence, touched    what rules look at
doubts, ambiguous_hunks, surroundings    checks of merges that look clean
"""
