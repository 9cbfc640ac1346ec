"""arena submit, one module per kind."""
