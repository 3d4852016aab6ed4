"""Runs carried elsewhere: one file = one target. They are discovered."""
