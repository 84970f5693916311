"""Texts: bytes to lines, differences, places, patches, merges, secrets.

Begin with `encoding.py` (a `Document`), then `locate.py` (search and replace) or `patch.py` (hunks).

encoding, edits, charsets, lines    bytes and lines
diff, myers, merge, regions, unified_diff, file_patch    differences and three-way merge
locate, matching, normalised, indent    where a passage is
locate_symbol, symbols, outline    where a symbol is
patch, hunk_location; forms/    patches in every form
merging/    what is merged beyond git, and the checks of a clean merge
secrets, redact    secrets found, and hidden from a reader
answer_space, search    what is shown of a text
"""
