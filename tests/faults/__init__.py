"""Kills, full disks, hostile directories and bad files."""
