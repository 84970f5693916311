"""What fits nowhere, and those who settle it."""
