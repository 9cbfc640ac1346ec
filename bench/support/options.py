"""The command line of a measurement: its help is the measurement's docstring."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable


def options(measurement: Callable[[], None]) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        description=inspect.getdoc(measurement),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
