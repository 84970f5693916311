"""Hostile bytes for whatever reads them first: in `make test` by hypothesis, and for longer by `make fuzz`."""
