"""What the questions share: an example, an opened model, derivatives, saved answers."""
