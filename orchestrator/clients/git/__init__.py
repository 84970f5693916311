"""What agents did, as commits of the git repository around the workspace.

- `repository.py`: git's own commands; nothing else calls git. Begin here.
- `task_changes.py`: what the changes of one task make of the files of a commit, and of nothing else.
"""
