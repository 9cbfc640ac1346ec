"""What the API server refuses, and in which words."""
