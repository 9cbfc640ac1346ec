"""The web console without its sockets: the forms of pages, boards made from a snapshot, charts, and
HTTP.
"""
