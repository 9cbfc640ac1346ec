"""The form of the page of serving jobs."""
