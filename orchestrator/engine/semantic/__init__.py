"""Search by meaning, where the operator set up a model; without one nothing of it runs.

Begin with `search.py`, the mode `semantic` of `search_content`.

indexer  keeps the index of vectors current: what changed, by content
search   the passages near a question and the places where its text stands, as one ranking
"""
