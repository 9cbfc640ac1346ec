"""The console's HTTP: routes, guard, answers, the page's files,
and the board states behind them.
"""
