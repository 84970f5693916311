"""What the engine needs from the world; each promise here is kept by every adapter, and a contract suite says so."""
