"""Measurements against peers and against published figures; results are kept as JSON beside the code."""
