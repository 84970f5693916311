"""What the engine needs from the world, as protocols; each promise here is kept by every adapter.

journal, maintenance   what is appended and asked; backups, archives, collection    → orchestrator/journal
workspace, disk        files and durable changes; the system calls below them       → orchestrator/workspace
watcher                hints of what other programs do                              → orchestrator/workspace
parser, workers        outlines of texts; long work on texts, apart from the loop   → orchestrator/workspace
checks, reviewers      a policy's check command; who is asked about a conflict      → orchestrator/workspace, review
machine                clock, entropy, the key that signs                           → orchestrator/machine.py, journal

Begin with `journal.py` and `workspace.py`. The contract suites in tests/contracts say what a promise means.
"""
