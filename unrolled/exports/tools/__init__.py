"""What the targets of exports share: the functions of a run as graphs, their facts, and the check against the run."""
