"""Roles that exist from the beginning, and the judgement of which identity may do what."""
