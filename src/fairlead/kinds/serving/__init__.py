"""Serving jobs: what they are, and how they are written."""
