"""Pure computation: no I/O, no clock, no randomness, no tasks.

Begin with `events/` (what is recorded) and `decisions/` (how a command and facts become events).

events/        event types and their encoding; projections/ folds them into state
decisions/     commands, and what becomes of each: apply, conflict, need
conflicts/     the versions of a conflict, routes to reviewers, resolutions
policy/        parses policy files and evaluates them
text/          encoding, diff, matching, patches, merging, secrets
ids, content, paths       values that everything names
globs, ignore_file       which paths a pattern selects; name_index: all names, in order
errors, system_errors        every error with its code
characters, fair_queue       invisible characters; a queue in which owners take turns
leases        what is reserved, and what a request for a lease leads to; kept_contents: what a scan keeps
change      what a change does to one path, who wants it and why
annotations    what the fields of a stored struct hold
"""
