"""Data sets that need no download: one file each, found by itself, `builtin:NAME`."""
