"""The tables that kubectl prints, made by the server."""
