"""The program `fairlead`, as `python -m fairlead` runs it."""

from __future__ import annotations

from fairlead.run.programs import run_fairlead

if __name__ == "__main__":
    run_fairlead()
