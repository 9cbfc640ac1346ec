"""Reads arena's configuration file: `key=value` lines in `$ARENA_CONFIG` or `~/.arena/config`.

Specification: docs/spec/arena-cli.md#config-file.

Unknown keys are kept; `cli/frame/arena_config` has the known ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlead.errors import UserError


def read_arena_config(env: Mapping[str, str]) -> dict[str, str]:
    """The settings; empty without a file.

    A file named in `ARENA_CONFIG` must be readable.
    """
    named, path = env.get("ARENA_CONFIG", ""), config_file(env)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if not named and isinstance(error, FileNotFoundError | NotADirectoryError):
            return {}
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UserError(
            f"config file `{path}` cannot be read: {reason}",
            "correct ARENA_CONFIG, or mend the file",
        ) from error
    return parse_arena_config(text)


def config_file(env: Mapping[str, str]) -> Path:
    named = env.get("ARENA_CONFIG", "")
    return (
        Path(named).expanduser()
        if named
        else Path(env.get("HOME") or "~", ".arena", "config").expanduser()
    )


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
