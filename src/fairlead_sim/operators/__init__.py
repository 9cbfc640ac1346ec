"""The operators of training jobs."""
