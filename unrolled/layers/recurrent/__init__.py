"""Recurrence: cells, and the ways to run them over time."""
