"""What others add to the daemon: packages that the operator named, each behind a fence."""
