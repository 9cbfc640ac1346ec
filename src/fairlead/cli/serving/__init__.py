"""arena serve."""
