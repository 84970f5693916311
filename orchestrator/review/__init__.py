"""Reviewers that the daemon can ask: a model over HTTP, a program, a person."""
