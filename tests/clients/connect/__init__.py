"""Clients' configuration files, in memory and on the disk."""
