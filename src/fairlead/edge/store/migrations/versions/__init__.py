"""One file for each version of the schema. A file that was released is not changed any more."""
