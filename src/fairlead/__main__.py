"""`python -m fairlead`."""

from __future__ import annotations

from fairlead.main import run_fairlead

if __name__ == "__main__":
    run_fairlead()
