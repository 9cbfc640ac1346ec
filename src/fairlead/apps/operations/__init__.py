"""Carrying operations out."""
