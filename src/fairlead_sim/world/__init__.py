"""A cluster with everything that makes it live, moved by one clock."""
