"""The page of serving jobs."""
