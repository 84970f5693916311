"""The journal itself: queried, followed, sealed, kept, checked, restored."""
