"""Fairlead's container image, built without a container builder, a daemon or root.

Three layers (`layers`): Debian packages, wheels, Fairlead's own wheel. The lock files determine
what is in the first two, so the same sources give the same bytes everywhere.
"""
