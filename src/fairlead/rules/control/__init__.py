"""What all deciders share: their interface, and calls that the watch does not show yet."""
