"""runs: the run directory, and the one place where a model and a task meet."""
