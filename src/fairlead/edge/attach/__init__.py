"""Attaching to programs in containers: the API server's exec streams over WebSocket."""
