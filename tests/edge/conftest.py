"""Fixtures of tests/edge: a credential plugin that is a real program, and a scripted API server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

_PLUGIN = """#!{python}
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open({log!r}, "a") as log:
    setting = os.environ.get("PLUGIN_SETTING")
    asked = {{"arguments": sys.argv[1:], "setting": setting, "info": info}}
    log.write(json.dumps(asked) + "\\n")
print({output!r})
sys.stderr.write({words!r})
sys.exit({status})
"""


class PluginBuilder:
    """Makes credential plugins and returns how they were called."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log = directory / "calls"

    def __call__(
        self,
        *,
        status: dict[str, str] | None = None,
        version: str = "v1",
        output: str | None = None,
        exit_status: int = 0,
        words: str = "",
    ) -> Path:
        credential = {
            "apiVersion": f"client.authentication.k8s.io/{version}",
            "kind": "ExecCredential",
            "status": status,
        }
        program = self._directory / "plugin"
        text = json.dumps(credential) if output is None else output
        program.write_text(
            _PLUGIN.format(
                python=sys.executable,
                log=str(self._log),
                output=text,
                words=words,
                status=exit_status,
            )
        )
        program.chmod(0o755)
        return program

    def calls(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self._log.read_text().splitlines()]
            if self._log.exists()
            else []
        )

    def last_call(self) -> dict[str, Any]:
        return self.calls()[-1]


@pytest.fixture
def plugin(tmp_path_factory: pytest.TempPathFactory) -> PluginBuilder:
    return PluginBuilder(tmp_path_factory.mktemp("plugin"))
