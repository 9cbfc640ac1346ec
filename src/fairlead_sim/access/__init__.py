"""Roles that are there from the beginning, and the judge of who may do what."""
