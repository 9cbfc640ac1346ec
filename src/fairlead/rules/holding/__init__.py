"""The one account of who holds what of each GPU, and the views of it that boards and metrics show."""
