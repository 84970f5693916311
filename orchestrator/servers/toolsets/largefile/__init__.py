"""The tools of the MCP server `largefile`, in its names, parameters and JSON; also those of its first versions.

`entry.py` lists them. Its environment variables are in `settings.py`.
"""
