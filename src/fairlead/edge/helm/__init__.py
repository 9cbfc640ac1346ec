"""Helm's releases, through the program `helm`, version 3 or 4."""
