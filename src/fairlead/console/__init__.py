"""The web console without its sockets: forms of pages, boards of a snapshot, charts, HTTP."""
