"""Looking inside: one question = one file."""
