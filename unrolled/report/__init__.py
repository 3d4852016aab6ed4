"""Run directories and comparisons -> one self-contained page."""
