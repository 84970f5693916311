"""The contract that callers see: operations, their parameters and results, and the lines on the socket.

Begin with operation.py (all that is declared of one) and operations.py (the catalogue).

parameters, results     of the operations on files, which operations declares; shared kinds of parameters
history, session_operations, conflicts, directory_stats    further operations of agents, with
journal_operations, journal_checks, administration     and of people           their parameters and results
failures        from JSON to parameters, or to the refusal of those that are wrong
framing, line_stream    the preamble, requests, replies and subscriptions; a stream of lines
locations, sockets, processes    where a workspace's state and socket lie; the locks of the process that serves it
"""
