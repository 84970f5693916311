"""A client's own configuration: what it must say so that the client works through the daemon and past nothing.

- `templates.py`: one template for each client: its files, their settings, what stays open. Begin here; `connect`, `up`,
  the documents and `deploy/` take their settings from it.
- `hook_settings.py`: the same for clients that keep their own tools, with our hook around them.
- `settings_file.py`: one configuration file on the disk: merged into, compared, written, restored.
- `settings_document.py`: what such a file says, as JSON or TOML.
- `connection_record.py`: what `connect` wrote, in the state directory, so that `disconnect` undoes exactly that.
- `effective_settings.py`: what a client's files say now, and what goes past the daemon all the same.
- `handshake.py`: starts the transport as the client does, and asks it for its tools.
- `hook_trial.py`: runs the hook as the client does, with an event that changes nothing.
- `installed.py`: which versions of a client are installed.
"""
