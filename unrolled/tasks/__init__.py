"""tasks: one file is one task."""
