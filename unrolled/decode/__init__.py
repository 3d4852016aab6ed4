"""decode: sampling and search, written against (step, state) alone."""
