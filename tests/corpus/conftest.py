"""The places in which patches are sent to a real daemon."""

from tests.end_to_end.conftest import place

__all__ = ["place"]
