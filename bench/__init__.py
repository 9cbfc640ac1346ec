"""Measurements, by what they measure: `python -m bench LIST` prints them."""
