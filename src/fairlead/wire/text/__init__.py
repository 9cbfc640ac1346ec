"""Text for people and terminals: tables, spans of time, schedules."""
