"""Commands that start a server, or speak to the laptop."""
