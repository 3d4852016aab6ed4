"""Layers with a closed form: counts, tables, least squares, neighbours."""
