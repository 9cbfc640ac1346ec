"""Reads from a real cluster for single commands and pages."""
