"""Toolsets with the names and habits of other servers, translated onto the catalogue.

A tool makes calls of operations and nothing else: gate, policy, journal and redaction are those of every caller.
Begin with `tool.py`; `drop_in.py` lists the sets, `translator.py` runs a call.
"""
