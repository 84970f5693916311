"""Patches as models write them. Begin with `recognise.py`.

unified, begin_patch, blocks    the forms
rows, hunks    rows of a patch, and its hunks
left_out    placeholders for left-out lines, which are refused
"""
