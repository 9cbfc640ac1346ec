"""arena's config file: `key=value` lines in `$ARENA_CONFIG` or `~/.arena/config` (contract §1). Unknown keys are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairlead.cli.frame.messages import Messages
from fairlead.errors import UserError

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


def read_arena_config(env: Mapping[str, str]) -> dict[str, str]:
    """The settings; empty when there is no file. A file that `ARENA_CONFIG` names must be readable."""
    named, path = env.get("ARENA_CONFIG", ""), _config_file(env)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if not named and isinstance(error, FileNotFoundError | NotADirectoryError):
            return {}
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UserError(f"config file `{path}` cannot be read: {reason}", "correct ARENA_CONFIG, or mend the file") from error
    return parse_arena_config(text)


def _config_file(env: Mapping[str, str]) -> Path:
    named = env.get("ARENA_CONFIG", "")
    return Path(named).expanduser() if named else Path(env.get("HOME") or "~", ".arena", "config").expanduser()


def is_legacy_layout(env: Mapping[str, str], messages: Messages) -> bool:
    """Whether tables are wanted as arena 0.4 printed them: `ARENA_OUTPUT=legacy`, or `output=legacy` in the file.

    `current` is the other layout, as no word is; any other word is told, once.
    """
    told = env.get("ARENA_OUTPUT", "")
    where, word = ("ARENA_OUTPUT=", told) if told else ("output=", read_arena_config(env).get("output", ""))
    if word not in ("", *LAYOUTS):
        known = " or ".join(f"`{each}`" for each in LAYOUTS)
        place = "" if told else f" in `{_config_file(env)}`"
        messages.warn(f"`{where}{word}`{place} is no layout of tables and is left aside: it is {known}")
    return word == "legacy"


def parse_arena_config(text: str) -> dict[str, str]:
    """
    >>> parse_arena_config("# mine\\nnamespace = team-a\\n\\nprometheus_address=http://p:9090\\nnonsense")
    {'namespace': 'team-a', 'prometheus_address': 'http://p:9090'}
    """
    settings: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            settings[key.strip()] = value.strip()
    return settings
