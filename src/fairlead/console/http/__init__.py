"""The console's HTTP: routes, guard, answers, files of the page, and the board states."""
