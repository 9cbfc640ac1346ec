"""Formats of other programs: `parse_…` reads one into the model,
`render_…` writes the model in it.
"""
