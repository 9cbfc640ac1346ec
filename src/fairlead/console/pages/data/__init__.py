"""Forms of the pages Datasets and Operations."""
