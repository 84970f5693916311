"""The program that embeds texts and keeps their vectors, seen from the daemon: `index_program.py`."""
