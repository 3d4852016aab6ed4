"""One file = one readout: a vector for a whole sequence. They are discovered."""
