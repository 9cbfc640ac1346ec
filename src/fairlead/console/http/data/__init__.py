"""What the pages Datasets and Operations show, read from the cluster and kept for a while."""
