"""Patches as models write them. Begin with `recognise.py`.

unified, begin_patch, search_replace, whole_file    one form each
rows, bodies    rows of a patch, and the lines of a hunk
left_out    placeholders for left-out lines, which are refused
"""
