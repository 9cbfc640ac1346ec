"""Registries of images: the part of the OCI distribution specification that pushes."""
