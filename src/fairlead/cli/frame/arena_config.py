"""The settings of arena's config file, and the requested layout of tables.

See docs/spec/arena-cli.md#config-file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.messages import Messages

SETTINGS: Final[Mapping[str, str]] = {
    "namespace": "the namespace, unless `-n` names another",
    "output": (
        "`legacy`: tables as arena 0.4 printed them; `current`: as now (ARENA_OUTPUT comes first)"
    ),
    "prometheus_address": (
        "`http://[user:password@]host:9090` of the Prometheus with GPU metrics "
        "(PROMETHEUS_ADDRESS comes first)"
    ),
    "prometheus_token": "its bearer token (PROMETHEUS_TOKEN comes first)",
    "prometheus_ca_file": "the authority of its certificate",
    "console_address": "the console's address, which `logviewer` prints",
    "imagePullSecrets": (
        "secrets of `submit` and `serve`, separated by commas, "
        "if `--image-pull-secret` is not given"
    ),
    "tfjob_role_sequence": "role sequence of `submit tfjob`, if `--role-sequence` is not given",
    "sync_git_image": "image of `--sync-mode git`",
    "sync_rsync_image": "image of `--sync-mode rsync`",
    "tensorboard_image": "image of `--tensorboard`",
}
"""The settings for the reference. Other keys of the file are arena's and are ignored."""

LAYOUTS: Final = ("legacy", "current")


def is_legacy_layout(env: Mapping[str, str], machine: Machine, messages: Messages) -> bool:
    """Whether tables are wanted as arena 0.4 printed them: `ARENA_OUTPUT=legacy`, or
    `output=legacy` in the file.

    `current`, or no value, is the other layout; any other value causes a warning, once.
    """
    variable = env.get("ARENA_OUTPUT", "")
    config = {} if variable else machine.config()
    where, word = ("ARENA_OUTPUT=", variable) if variable else ("output=", config.get("output", ""))
    if word not in ("", *LAYOUTS):
        known = " or ".join(f"`{each}`" for each in LAYOUTS)
        place = "" if variable else f" in `{machine.config_file()}`"
        messages.warn(
            f"`{where}{word}`{place} is not a layout of tables and is ignored: use {known}"
        )
    return word == "legacy"
