"""Memories: patterns that are stored and recalled from a part of them, from Hopfield (1982) to attention."""
