"""The laptop as the cluster of a team: `fairlead up` with sign-in, whose quota and people
controllers are at work, with the interface that the walk of tests/kube/team_walk.py uses.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.team_line import PLACE, Object, TeamPlace

_HEAD: Final = """
title = "A team"

[[node_pools]]
name = "only"
count = 1
cpu = 56
memory = "256Gi"
"""


def scenario(root: Object) -> str:
    """A file for `fairlead up --scenario`: one node, and this tree with its namespaces."""
    return _HEAD + "".join(_entries(root))


def _entries(node: Object) -> Iterator[str]:
    places = list(node.get("namespaces", ()))
    for each in places:
        yield f'\n[[teams]]\nname = "{each}"\nnamespaces = ["{each}"]\n'
    bounds = "".join(f"{key} = {{ cpu = {node[key]['cpu']} }}\n" for key in ("min", "max"))
    leaf = f"namespaces = {json.dumps(places)}\n" if places else ""
    yield f'\n[[quota]]\npath = "{node["name"]}"\n{bounds}{leaf}'
    for child in node.get("children", ()):
        yield from _entries(child)


class LaptopPlane:
    """What the walk uses of a control plane. Certificates and keys are files."""

    def __init__(self, laptop: Laptop, folder: Path) -> None:
        entries = yaml.safe_load(laptop.kubeconfig.read_text(encoding="utf-8"))
        found, own = entries["clusters"][0]["cluster"], entries["users"][0]["user"]
        self.folder = folder
        self.admin = laptop.kubectl
        self.server: str = found["server"]
        self.port = int(self.server.rpartition(":")[2])
        self.authority = folder / "authority.pem"
        self.authority.write_bytes(base64.b64decode(found["certificate-authority-data"]))
        self.admin_pair = None
        self.admin_headers = {"Authorization": f"Bearer {own['token']}"}


class LaptopTeam(TeamPlace):
    def __init__(self, laptop: Laptop, folder: Path) -> None:
        self.laptop = laptop
        self.cluster = LaptopPlane(laptop, folder)
        self.url = laptop.console.url


@contextmanager
def running_laptop_team(
    log: Path, root: Object, *more: Object, speed: int = 1
) -> Iterator[LaptopTeam]:
    """A laptop whose tree this is, with these Users. The groups that a laptop makes of its leaves
    are deleted.
    """
    with tempfile.TemporaryDirectory(prefix="fairlead-team-") as name:
        folder = Path(name)
        file = folder / "team.toml"
        file.write_text(scenario(root), encoding="utf-8")
        arguments = (f"--scenario={file}", "--sign-in=true", f"--speed={speed}")
        with running_laptop(log, *arguments) as laptop:
            team = LaptopTeam(laptop, folder)
            team.cluster.admin.run("delete", "usergroups", "--all", "-n", PLACE)
            team.cluster.admin.create(list(more))
            yield team
