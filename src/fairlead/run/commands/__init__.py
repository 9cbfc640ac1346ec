"""What commands do in their own process beside one answer: operations."""
