"""A job that is about to be submitted: whether it would start."""
