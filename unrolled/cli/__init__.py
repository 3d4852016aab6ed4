"""cli: one file is one command."""
