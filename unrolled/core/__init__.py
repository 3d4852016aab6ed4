"""core: the contract that every model obeys."""
