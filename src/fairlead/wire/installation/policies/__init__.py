"""Policies of admission: what each account of an installation may write."""
