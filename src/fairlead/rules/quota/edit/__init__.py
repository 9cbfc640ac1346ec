"""What follows from an edit of the quota tree: refused cells, and effects of saving it."""
