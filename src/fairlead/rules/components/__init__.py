"""Components: which there are, how each is, what a plan checks and what it writes."""
