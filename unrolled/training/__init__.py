"""training: the loop, budgets, schedules; knows tasks and runs, no model names."""
