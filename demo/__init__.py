"""Two agents share a copy of a real repository, and what came of it is told and checked.

`python -m demo [PATH]`: PATH is any repository or folder; this project's own tree without it.
Everything happens on a copy, with a home folder of its own; nothing of the machine is touched.
"""
