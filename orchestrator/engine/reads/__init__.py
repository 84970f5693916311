"""What callers are shown: files, searches, the past, and what others did to what they read."""
