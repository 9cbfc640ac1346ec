"""The address of the console in a kubeconfig: written when one is issued, read by commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.model.people.record import ServerAddress
from fairlead.wire.people.credentials import render_kubeconfig

SERVER = ServerAddress("https://api.example:6443", None)


def read(path: Path, document: Any) -> str:
    path.write_text(yaml.safe_dump(document))
    found = find_connection(str(path), None, env={})
    assert found is not None
    return found.console


def issued(console: str) -> dict[str, Any]:
    return render_kubeconfig("bob", {"token": "t"}, "team-a", SERVER, console)


def test_an_issued_kubeconfig_names_the_console(tmp_path: Path) -> None:
    assert read(tmp_path / "a", issued("https://gpu.example/console")) == (
        "https://gpu.example/console"
    )
    assert read(tmp_path / "b", issued("")) == ""
    assert "extensions" not in issued("")["clusters"][0]["cluster"]


@pytest.mark.parametrize("value", [None, "https://a", {"address": 5}, {"address": "file:///etc"}])
def test_a_malformed_address_is_unknown(tmp_path: Path, value: object) -> None:
    document = issued("https://a")
    document["clusters"][0]["cluster"]["extensions"][0]["extension"] = value
    assert read(tmp_path / "a", document) == ""
