"""Events, whatever their type."""
