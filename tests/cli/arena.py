"""`arena` as a process of its own, and the smallest kubeconfig that leads it to a server of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def arena(home: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    code = "from fairlead.run.programs import run_arena; run_arena()"
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, env={**clean, **env}, check=False
    )


def kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "config"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "current-context": "c",
            }
        )
    )
    return path
