"""Signing in and out, and the subject of each request."""
