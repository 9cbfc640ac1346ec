"""One answer from the real cluster for one command."""
