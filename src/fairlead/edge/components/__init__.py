"""What is read of a cluster about components."""
