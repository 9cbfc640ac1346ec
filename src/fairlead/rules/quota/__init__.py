"""What counts against a quota."""
