"""Makes probes of their flags, such as `--readiness-probe-action httpGet` and its options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from fairlead.cli.frame.values import count, invalid, word

PROBES: Final = ("liveness", "readiness", "startup")
_ACTIONS: Final = {
    "httpGet": ("path", "port", "scheme", "host"),
    "exec": ("command",),
    "grpc": ("port", "service"),
    "tcpSocket": ("port", "host"),
}
"""Options of each action; all but `exec` need a port."""
_OPTIONS: Final = (
    *(
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
        "terminationGracePeriodSeconds",
    ),
)


def probes(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """By `liveness`, `readiness`, `startup`; none for what has no action."""
    found = {}
    for probe in PROBES:
        action = word(
            f"{probe}-probe-action", getattr(args, f"{probe}_probe_action"), ("", *_ACTIONS)
        )
        asked, numbers = (
            getattr(args, f"{probe}_probe_action_option"),
            getattr(args, f"{probe}_probe_option"),
        )
        if action:
            found[probe] = {
                action: _action(probe, action, asked),
                **_numbers(f"{probe}-probe-option", numbers),
            }
        elif asked or numbers:
            raise invalid(
                f"--{probe}-probe-action is not set", f"it is one of {', '.join(_ACTIONS)}"
            )
    return found


def _action(probe: str, action: str, texts: Sequence[str]) -> dict[str, Any]:
    flag = f"{probe}-probe-action-option"
    found: dict[str, Any] = {}
    for text in texts:
        key, value = _option(flag, text, _ACTIONS[action])
        if key == "command":
            found[key] = value.split()
        else:
            found[key] = count(flag, value, 1) if key == "port" and value.isdigit() else value
    needed = "command" if action == "exec" else "port"
    if not found.get(needed):
        raise invalid(
            f"--{flag} is invalid: {action} needs `{needed}`", f"add --{flag} `{needed}: …`"
        )
    return found


def _numbers(flag: str, texts: Sequence[str]) -> dict[str, int]:
    return {
        key: count(flag, value) for key, value in (_option(flag, text, _OPTIONS) for text in texts)
    }


def _option(flag: str, text: str, known: Sequence[str]) -> tuple[str, str]:
    """`key: value`, or as arena's users write commands, `key=value`."""
    place = min((at for at in (text.find(":"), text.find("=")) if at > 0), default=0)
    key, value = text[:place].strip(), text[place + 1 :].strip()
    if key not in known or not value:
        raise invalid(
            f"--{flag} is invalid: `{text}`",
            f"write it as `KEY: VALUE`; KEY is one of {', '.join(known)}",
        )
    return key, value
