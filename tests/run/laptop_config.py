"""A kubeconfig that contains the addresses of a laptop's pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.arena import kubeconfig


def laptop_config(folder: Path, server: str, extension: Any) -> Path:
    path = kubeconfig(folder, server)
    document = json.loads(path.read_text())
    document["clusters"][0]["cluster"]["extensions"] = [
        {"name": "fairlead.io/laptop", "extension": extension}
    ]
    path.write_text(json.dumps(document))
    return path
