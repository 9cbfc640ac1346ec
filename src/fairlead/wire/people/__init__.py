"""Users in the objects of arena."""
