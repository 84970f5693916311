"""What the engine needs from the world, as protocols; each promise here is kept by every adapter.

journal                what is appended and asked; backups, archives, collection    → orchestrator/journal
workspace              files, durable changes, what other programs do               → orchestrator/workspace
reviewers              who is asked about a conflict; a policy's check command      → orchestrator/review, workspace
commands               programs that agents run, confined; copies of the tree       → orchestrator/workspace
machine                clock, entropy, the key that signs                           → orchestrator/machine.py, journal
                       outlines of texts, and long work on texts, off the loop      → orchestrator/workspace

Begin with `journal.py` and `workspace.py`. The contract suites in tests/contracts say what a promise means.
"""
