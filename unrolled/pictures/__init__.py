"""Pictures as values: what is to be drawn, and what draws it."""
