"""What an image contains, as CycloneDX 1.6: its Debian packages, its wheels, Fairlead itself.

All of it comes from the lock files and from the files that were unpacked; nothing is guessed from
the image.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from image.debian_lock import SUITE, LockedPackage


def bill_text(
    *,
    image: str,
    version: str,
    digest: str,
    packages: Sequence[LockedPackage],
    wheels: Sequence[Path],
    created: int,
) -> str:
    """The CycloneDX document of the image with `digest` ("sha256:…"), for one architecture.

    `wheels` includes Fairlead's own. `created` is in seconds since 1970. The serial number follows
    from the digest, so the same image has the same document.
    """
    name = f"{image}@{digest}"
    moment = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    subject = {
        "bom-ref": name,
        "type": "container",
        "name": image,
        "version": version,
        "hashes": _hashes(digest.removeprefix("sha256:")),
        "purl": f"pkg:oci/{image}@{quote(digest, safe='')}",
    }
    components = [*map(_package, packages), *map(_wheel, wheels)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}",
        "version": 1,
        "metadata": {"timestamp": moment, "component": subject},
        "components": components,
        "dependencies": [
            {"ref": name, "dependsOn": sorted(each["bom-ref"] for each in components)}
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _package(package: LockedPackage) -> dict[str, Any]:
    version = quote(package.version, safe="")
    purl = f"pkg:deb/debian/{quote(package.name, safe='')}@{version}"
    purl += f"?arch={package.file.rpartition('_')[2].removesuffix('.deb')}&distro={SUITE}"
    return _component(package.name, package.version, purl, package.sha256)


def _wheel(wheel: Path) -> dict[str, Any]:
    """By the name of the file, as PyPA's specification of wheels writes it."""
    name, version = wheel.name.split("-")[:2]
    name = re.sub(r"[-_.]+", "-", name).lower()
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return _component(name, version, f"pkg:pypi/{name}@{quote(version, safe='')}", sha256)


def _component(name: str, version: str, purl: str, sha256: str) -> dict[str, Any]:
    return {
        "bom-ref": purl,
        "type": "library",
        "name": name,
        "version": version,
        "hashes": _hashes(sha256),
        "purl": purl,
    }


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]
