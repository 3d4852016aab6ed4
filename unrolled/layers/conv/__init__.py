"""Convolutions over time and over images."""
