"""Writes and removes an installation."""
