"""The transports in the daemon: from a connection to a call of the engine, and back to an answer.

Begin with socket.py (connections) and dispatch.py (one call to one answer, on every transport).

auth            who calls: from the preamble and the peer's uid to a caller
call_scheduler  which calls run now, and which of them are heavy
mcp, tools      MCP over the same socket; the catalogue as tools; mcp_lines: its lines
elicitation     a question to the person before an MCP client, within a call
blocks          reads, histories and notices as text for a model
answer_limits   answers cut to what a client passes on
"""
