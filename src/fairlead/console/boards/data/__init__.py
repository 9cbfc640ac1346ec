"""Rows of the pages Datasets, Components and Operations."""
