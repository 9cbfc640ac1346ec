"""The account of what each pod holds of each GPU, and the views of it for boards and metrics."""
