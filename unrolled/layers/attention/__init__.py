"""Attention, positions, blocks, and what reads a whole sequence out."""
