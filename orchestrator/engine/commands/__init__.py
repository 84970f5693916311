"""Commands that agents run through us.

- `command_service.py`: the operations. Begin here.
- `permission.py`: whether policy, or a person, lets a command run, in which mode and with what in its environment.
- `execution.py`: one command from its start to its end, with what it changes.
- `kept_output.py`: what it writes, as much of it as is kept; `output_text.py`: as a caller is shown it.
"""
