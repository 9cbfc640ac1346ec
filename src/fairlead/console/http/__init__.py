"""The console's HTTP: guard, answers, files, change hints."""
