"""What other hands do to the workspace, found and entered."""
