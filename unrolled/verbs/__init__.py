"""verbs: one file is one thing that a saved run can be asked to do."""
