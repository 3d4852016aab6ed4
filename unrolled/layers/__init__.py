"""layers: primitives, the only place where chunks and state are handled by hand."""
