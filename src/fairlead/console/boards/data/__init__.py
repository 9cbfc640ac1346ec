"""Rows of the pages Datasets and Operations."""
