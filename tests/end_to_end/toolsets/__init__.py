"""Toolsets that stand in for other servers, beside answers recorded from the originals."""
