"""What callers are shown of files: the present, the past, and what changed since they looked.

Begin with file_reads.py: a read brings the journal up to date with the disk, shows lines and notes which.

- file_reads, listing, search: files, names and matching lines as they are now, and old versions of a file
- file_facts, directory_stats: what a file is, how much is below a directory
- history, tree_diffs: the versions of a file; diffs of a file and of the whole tree
- blame: who brought each line of a file in
- time_travel: changes after a version, the tree at one
- read_regions, stale_read_notices: what a session read, what of it others changed, and the notice of it
"""
