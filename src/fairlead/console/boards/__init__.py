"""Boards and details, made from one snapshot."""
