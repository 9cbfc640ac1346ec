"""GPUs: what a driver says of them, what a reading is, where they are, and the errors they report."""
