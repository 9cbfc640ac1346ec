"""The scheduler extender's requests and answers, and its inspection."""
