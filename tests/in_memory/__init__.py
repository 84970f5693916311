"""In-memory twins of the journal and the workspace.

The contract suites in tests/contracts prove each equal to the real one.
"""
