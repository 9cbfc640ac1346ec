"""What arena's config file may say, and the layout of tables that is asked for.

See docs/spec/arena-cli.md#config-file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.messages import Messages

SETTINGS: Final[Mapping[str, str]] = {
    "namespace": "where to work, unless `-n` says otherwise",
    "output": "`legacy`: tables as arena 0.4 printed them; `current`: as now (ARENA_OUTPUT comes first)",
    "prometheus_address": "`http://[user:password@]host:9090` of the Prometheus that knows the GPUs (PROMETHEUS_ADDRESS comes first)",
    "prometheus_token": "its bearer token (PROMETHEUS_TOKEN comes first)",
    "prometheus_ca_file": "the authority of its certificate",
    "console_address": "where the console is that `logviewer` names",
    "imagePullSecrets": "secrets of `submit` and `serve`, with commas, where `--image-pull-secret` names none",
    "tfjob_role_sequence": "of `submit tfjob`, where `--role-sequence` says nothing",
    "sync_git_image": "of `--sync-mode git`",
    "sync_rsync_image": "of `--sync-mode rsync`",
    "tensorboard_image": "of `--tensorboard`",
}
"""What the file may say, for the reference. Other keys are arena's, and left alone."""

LAYOUTS: Final = ("legacy", "current")


def is_legacy_layout(env: Mapping[str, str], machine: Machine, messages: Messages) -> bool:
    """Whether tables are wanted as arena 0.4 printed them: `ARENA_OUTPUT=legacy`, or `output=legacy` in the
    file.

    `current` is the other layout, as no word is; any other word is told, once.
    """
    told = env.get("ARENA_OUTPUT", "")
    config = {} if told else machine.config()
    where, word = ("ARENA_OUTPUT=", told) if told else ("output=", config.get("output", ""))
    if word not in ("", *LAYOUTS):
        known = " or ".join(f"`{each}`" for each in LAYOUTS)
        place = "" if told else f" in `{machine.config_file()}`"
        messages.warn(f"`{where}{word}`{place} is no layout of tables and is left aside: it is {known}")
    return word == "legacy"
