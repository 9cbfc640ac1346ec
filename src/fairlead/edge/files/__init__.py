"""This machine's files and clock."""
