"""Formats of files: one file each."""
