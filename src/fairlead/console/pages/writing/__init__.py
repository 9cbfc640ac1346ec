"""Bodies and answers of what the console writes."""
