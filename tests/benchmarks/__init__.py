"""`make bench`: our figures beside those of peers and limits, in one run."""
