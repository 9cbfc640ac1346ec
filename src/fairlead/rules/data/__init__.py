"""What follows from claims of volumes and data sets."""
