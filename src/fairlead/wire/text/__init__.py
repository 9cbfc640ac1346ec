"""Small texts: tables and their escaping for terminals, spans of time, schedules."""
