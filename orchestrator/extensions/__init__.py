"""What others add to the daemon: plugins that the operator named, none of which can hold up or end the daemon.

Begin with `hookspecs.py`, what a plugin can be asked. `manager.py` finds, loads and calls the plugins, each call in a
thread of its own, and leaves out those that fail.
"""
