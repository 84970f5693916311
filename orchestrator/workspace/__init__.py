"""The workspace on this machine's disk, behind `ports/`.

Begin with `local.py` (reads, listings, scans) and `atomic_write.py` (one durable change).

confine, disk, own_files    paths to handles, system calls, the daemon's own files
temporary_file              the new content, with the old one's metadata
change_threads, landlock     what the kernel too keeps changes and workers from
watcher, notifier, ignore   what changes, and what is left out
workers, worker_process, local_parser    parsing and costly work in processes
scratch_check               a policy's check command
confined_command, fork_server, command_launcher    commands that agents run
scratch_tree                copies of the tree for them, or overlays over `scratch_base`; `scratch_changes` in them
"""
