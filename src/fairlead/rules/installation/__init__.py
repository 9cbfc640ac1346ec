"""Decisions about an installation."""
