"""engine: whole causal models lowered to native programs, one call for many tokens."""
