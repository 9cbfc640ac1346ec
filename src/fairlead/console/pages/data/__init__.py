"""Forms of the pages Datasets, Components and Operations."""
