"""What a person gives a server to read, again when it changes: counters, and the lock of its pages."""
