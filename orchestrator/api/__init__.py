"""The contract that callers see: operations, their parameters and results, and the lines on the socket.

Begin with operation.py (all that is declared of one) and operations.py (the catalogue).

parameters, results     of most operations; shared kinds of parameters
blame, rollback, leases, time_travel, stale_readers, journal_operations     operations with structs of their own
feed            subscriptions, which are methods of the socket and no tools
failures        from JSON to parameters, and from errors to refusals
framing, line_stream    the preamble, requests and replies; a stream of lines
locations, processes    where a workspace's state and socket lie, and which process serves it
"""
