"""Snapshots: save, show, jobs of a saved cluster."""
