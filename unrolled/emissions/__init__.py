"""What outputs mean: one file is one kind of output."""
