"""Helm's answers as values, and what Fairlead writes into a release."""
