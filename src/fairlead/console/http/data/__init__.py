"""What the pages Datasets, Components and Operations show, read and kept for a while."""
