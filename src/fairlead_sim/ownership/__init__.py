"""Who wrote a field: `metadata.managedFields`, server-side apply, its conflicts and withdrawals."""
