"""Serving jobs: how they are found and written."""
