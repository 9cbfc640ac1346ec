"""Writes a bundle into the current folder by the functions of `make bundle`, of artefacts that hold
any bytes, and prints its sum as `make bundle` does.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def main() -> None:
    sys.path.insert(0, str(TOOLS))
    from artefacts import sha256
    from build_image import project_version
    from bundle import bundle_files, write_bundle

    version = project_version()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        for ending in (".oci.tar", "-amd64.cdx.json", ".tgz", "-py3-none-any.whl"):
            (folder / f"fairlead-{version}{ending}").write_bytes(ending.encode())
        (folder / "objects.yaml").write_text("kind: List\n", encoding="utf-8")
        built = write_bundle(folder, version, bundle_files(folder, [], folder / "objects.yaml"))
        built = built.rename(built.name)
    print(f"{sha256(built)}  {built.name}")


if __name__ == "__main__":
    main()
