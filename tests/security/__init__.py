"""Attacks on a running daemon, through its socket."""

import pytest

pytest.register_assert_rewrite("tests.security.hostile_workspace")
