"""Agents that are started: with a scripted one that speaks ACP, and the tables of what is answered."""
