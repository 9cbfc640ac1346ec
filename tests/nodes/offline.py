"""docs/get-started/without-internet.md, typed as it is printed: a bundle becomes a command, images
in a registry, and images on every node.

`offline.toml` has each exception with its reason.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.documents.typed_pages import Terminal, blocks, check_entries, commands, play
from tests.kube.helm import packed_chart
from tests.kube.image_registry import ImageRegistry, image_registry
from tests.kube.kubelet import SOCKET
from tests.kube.node_room import beside
from tests.kube.programs import program
from tests.nodes.cluster import Cluster
from tests.nodes.network import MACHINE

from fairlead import __version__

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))

from bundle import bundle_files, write_bundle  # noqa: E402
from distributions import build_distribution  # noqa: E402
from image.bytecode import host_architecture  # noqa: E402
from image.wheels import fetched_wheels  # noqa: E402

PAGE = ROOT / "docs" / "get-started" / "without-internet.md"
_LIST = Path(__file__).with_name("offline.toml").read_text(encoding="utf-8")
_LINES: list[dict[str, str]] = tomllib.loads(_LIST)["lines"]
SECONDS = 400.0
"""For one command: pip installs all packages."""
REGISTRY = "registry.bundle.example"
"""The name by which the nodes know the registry to which the page pushes."""


@dataclass(frozen=True)
class Offline:
    """`chart`: of the extracted bundle. `image`: in the registry, by the name of the nodes."""

    registry: ImageRegistry
    chart: Path
    image: str


@contextmanager
def typed_page(cluster: Cluster, folder: Path) -> Iterator[Offline]:
    """The page has been typed, up to the installation; the registry runs for the block."""
    text = PAGE.read_text(encoding="utf-8")
    lines = [
        line
        for language, printed, _ in blocks(text)
        if language == "console"
        for line in commands(printed)
    ]
    check_entries(_LINES, {line.command for line in lines})
    entries = {each["line"]: each for each in _LINES}
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    (home / ".kube").mkdir(parents=True)
    (home / ".kube" / "config").write_bytes(cluster.plane.kubeconfig.read_bytes())
    _write_bundle(cluster, work)
    _write_ctr(cluster, folder / "bin")
    with image_registry(folder / "registry", address=MACHINE) as registry:
        _write_hosts(cluster, registry)
        variables = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "REGISTRY": registry.host,
            "PIP_NO_COMPILE": "1",
        }
        terminal = Terminal(work, home, variables, SECONDS)
        for command, prints in lines:
            play(terminal, entries.get(command, {"line": command}), prints, str)
        chart = work / "checked" / "chart" / f"fairlead-{__version__}.tgz"
        yield Offline(registry, chart, f"{REGISTRY}/fairlead:{__version__}")


def _write_bundle(cluster: Cluster, folder: Path) -> None:
    """As `make bundle` does, for this machine's architecture and Python."""
    made = folder / "artefacts"
    made.mkdir()
    image = made / f"fairlead-{__version__}.oci.tar"
    image.symlink_to(cluster.plane.folder / "fairlead.oci.tar")
    (made / f"fairlead-{__version__}-{host_architecture()}.cdx.json").write_text("{}", "utf-8")
    packed_chart(made)
    (folder / "wheel").mkdir()
    build_distribution("wheel", folder / "wheel").rename(
        made / f"fairlead-{__version__}-py3-none-any.whl"
    )
    objects = folder / "objects.yaml"
    objects.write_text("kind: List\n", encoding="utf-8")
    python = ".".join(platform.python_version_tuple()[:2])
    wheels = fetched_wheels(host_architecture(), python)
    built = write_bundle(made, __version__, bundle_files(made, wheels, objects))
    built.rename(folder / built.name)


def _write_ctr(cluster: Cluster, folder: Path) -> None:
    """The command `ctr`, which runs containerd's on every node, one after the other."""
    folder.mkdir()
    here = f'cd "$0" && exec {program("ctr")} --address {SOCKET} "$@"'
    lines = [
        " ".join([*beside(node.programs.room, "sh", "-c", shlex.quote(here)), '"$PWD" "$@"'])
        for node in cluster.nodes.values()
    ]
    text = "#!/bin/sh\nset -e\n" + "".join(f"{line}\n" for line in lines)
    (folder / "ctr").write_text(text, encoding="utf-8")
    (folder / "ctr").chmod(0o755)


def _write_hosts(cluster: Cluster, registry: ImageRegistry) -> None:
    """From now on the nodes pull images of REGISTRY from this one."""
    folder = cluster.plane.folder / "registries" / REGISTRY
    folder.mkdir()
    url = f"http://{registry.host}"
    text = f'server = "{url}"\n[host."{url}"]\ncapabilities = ["pull", "resolve"]\n'
    (folder / "hosts.toml").write_text(text, encoding="utf-8")
