"""The reference server `@modelcontextprotocol/server-filesystem`: parameters, reads, edits and listings.

Begin with `entry.py`, which lists the tools.
"""
