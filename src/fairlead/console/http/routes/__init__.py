"""The routes of the console and their answers."""
