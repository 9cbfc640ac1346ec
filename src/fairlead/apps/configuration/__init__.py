"""Files that configure a server and are read again when they change: counters, TLS, passwords."""
