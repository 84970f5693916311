"""`orchestrator hook CLIENT`: what an agent's client runs around its own tools. Standard library only.

- `program.py`: reads the client's JSON, asks the daemon once, answers as the client understands it. Begin here.
- `event.py`: a call of a hook, whichever client it is of.
- `claude.py`, `codex.py`, `cursor.py`, `gemini.py`, `opencode.py`: the JSON of each client, in and out.
- `opencode.js`: the plugin by which opencode runs it.
- `patch_paths.py`: the paths in the patches of Codex and opencode.
- `one_call.py`: one call on the daemon's socket, within a time.
"""
