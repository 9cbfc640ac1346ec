"""Values of flags: numbers, `KEY=VALUE`, durations, taints, mounts; UserError if invalid.

The sentences are arena's where arena has one (docs/spec/arena-cli.md#effects-of-the-flags), and
those of Go's flag library for numbers and times.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fairlead.errors import UserError
from fairlead.kinds.parts.job_spec import JobToleration, SecretEnv
from fairlead.wire.kube.quantity import parse_quantity

INVALID: Final = "failed to validate command args: "
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME_MAX: Final = 49
_OBJECT: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_ENV: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_TIME: Final = re.compile(r"(\d{1,40}+(?:\.\d{1,40}+)?+)(h|m|s|ms)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INT_MAX: Final = 2**31 - 1


def invalid(what: str, hint: str = "") -> UserError:
    """A value that `submit` refuses, in arena's words (docs/spec/arena-cli.md#objects)."""
    return UserError(INVALID + what, hint)


def job_name(text: str, *, may_begin_with_digit: bool = False) -> str:
    """Operators make host names and Services of it, so most refuse one that begins with a digit."""
    if not text:
        raise UserError('required flag(s) "name" not set', "`--name NAME` names the job")
    if len(text) > _NAME_MAX:
        raise invalid(f"the len {len(text)} of name {text} is too long, it should be less than 49")
    if not _NAME.fullmatch(text):
        raise invalid(
            "the job name must consist of lower case alphanumeric characters or '-', and must "
            "start and end with an alphanumeric character"
        )
    if text[0].isdigit() and not may_begin_with_digit:
        raise invalid(
            f"the job name must start with a letter, not as {text} with a digit",
            f"e.g. `--name job-{text}`",
        )
    return text


def number(flag: str, text: str) -> int:
    """Any whole number that an object of Kubernetes can hold."""
    try:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError
        value = int(text)
    except ValueError:
        raise UserError(
            f'invalid argument "{text}" for "--{flag}" flag: '
            f'strconv.ParseInt: parsing "{text}": invalid syntax'
        ) from None
    if abs(value) > _INT_MAX:
        raise UserError(
            f'invalid argument "{text}" for "--{flag}" flag: '
            f'strconv.ParseInt: parsing "{text}": value out of range'
        )
    return value


def count(flag: str, text: str, least: int = 0) -> int:
    value = number(flag, text)
    if value < least:
        raise invalid(f"--{flag} is invalid", f"it is {value}, and must be {least} or more")
    return value


def port(flag: str, text: str) -> int:
    value = count(flag, text)
    if value > 65535:
        raise invalid(f"--{flag} is invalid", f"it is {value}; ports end at 65535")
    return value


def seconds(flag: str, text: str) -> int | None:
    """Go's lengths of time, cut to whole seconds; None when the flag was not given.

    >>> seconds("retry-after", "1h2m3s"), seconds("retry-after", "1.5m"), seconds("retry-after", "")
    (3723, 90, None)
    """
    if not text:
        return None
    if text == "0":
        return 0
    pieces = _TIME.findall(text)
    if not pieces or "".join(amount + unit for amount, unit in pieces) != text or len(text) > 40:
        raise UserError(
            f'invalid argument "{text}" for "--{flag}" flag: time: invalid duration "{text}"',
            "write it as `1h2m3s`",
        )
    value = int(sum(float(amount) * _SECONDS[unit] for amount, unit in pieces))
    if value > _INT_MAX:
        raise invalid(f"--{flag} is invalid", f"`{text}` is more than {_INT_MAX} seconds")
    return value


def quantity(flag: str, text: str) -> str:
    """cpu, memory or a size, left as the person wrote it; empty stays empty."""
    if not text:
        return ""
    try:
        amount = parse_quantity(text, scale=3)
    except ValueError as error:
        raise invalid(f"--{flag} is invalid: {error}", "write it as `500m`, `4` or `8Gi`") from None
    if amount < 0:
        raise invalid(f"--{flag} is invalid: `{text}` is below zero")
    return text


def word(flag: str, text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise invalid(
            f"--{flag} is invalid: unknown value {text}",
            f"it is one of {', '.join(each for each in known if each)}",
        )
    return text


def one_of(*known: str) -> Callable[[str, str], str]:
    """`word` with the words that it knows."""
    return lambda flag, text: word(flag, text, known)


def clean_policy(flag: str, text: str) -> str:
    if text not in ("", "None", "Running", "All"):
        raise invalid(f"unsupported cleanTaskPolicy {text}", "it is None, Running or All")
    return text


def object_name(flag: str, text: str) -> str:
    if text and not _OBJECT.fullmatch(text):
        raise invalid(
            f"--{flag} is invalid: `{text}` is no name of an object",
            "names have lower case letters, digits, `-` and `.`",
        )
    return text


def pairs(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE`; the last of a key wins."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise invalid(f"--{flag} is invalid: `{text}`", "write it as KEY=VALUE")
        found[key] = value
    return found


def env(flag: str, texts: Iterable[str]) -> dict[str, str]:
    found = pairs(flag, texts)
    for name in found:
        if not _ENV.fullmatch(name):
            raise invalid(f"--{flag} is invalid: `{name}` is no name of an environment variable")
    return found


def keyed(flag: str, texts: Iterable[str]) -> dict[str, str]:
    found = pairs(flag, texts)
    for key in found:
        _check_key(flag, key)
    return found


def labels(flag: str, texts: Iterable[str]) -> dict[str, str]:
    found = keyed(flag, texts)
    for key, value in found.items():
        if not _LABEL_VALUE.fullmatch(value):
            raise invalid(
                f"--{flag} is invalid: `{value}` of {key} is no value of a label",
                "at most 63 letters, digits, `-`, `_` and `.`",
            )
    return found


def devices(flag: str, texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        resource, equals, amount = text.partition("=")
        if (
            not equals
            or "/" not in resource
            or not _KEY.fullmatch(resource)
            or not re.fullmatch(r"[0-9]{1,9}", amount)
        ):
            raise invalid(f"--{flag} is invalid: `{text}`", "write it as `amd.com/gpu=1`")
        if resource == "nvidia.com/gpu":
            raise invalid(
                f"please use '--gpus {amount}' instead of '--device nvidia.com/gpu={amount}'"
            )
        found[resource] = int(amount)
    return found


def toleration(text: str) -> JobToleration:
    """`KEY=VALUE:EFFECT,OPERATOR`, `KEY:EFFECT`, `KEY`, or `all`.

    >>> toleration("all"), toleration("gpu:NoSchedule")
    (JobToleration(key='', operator='Exists', value='', effect=''), \
JobToleration(key='gpu', operator='Exists', value='', effect='NoSchedule'))
    """
    if text == "all":
        return JobToleration(operator="Exists")
    body, comma, operator = text.partition(",")
    body, colon, effect = body.partition(":")
    key, equals, value = body.partition("=")
    operator = operator if comma else "Equal" if equals else "Exists"
    is_good = (
        _KEY.fullmatch(key)
        and _LABEL_VALUE.fullmatch(value)
        and operator in ("Exists", "Equal")
        and (effect in _EFFECTS or not colon)
        and not (operator == "Exists" and value)
    )
    if not is_good:
        raise invalid(
            f"--toleration is invalid: `{text}`",
            (
                "write KEY=VALUE:EFFECT,Equal or KEY:EFFECT or KEY or all; EFFECT is "
                f"{', '.join(_EFFECTS)}"
            ),
        )
    return JobToleration(key, operator, value, effect)


def tolerations(flag: str, texts: Iterable[str]) -> tuple[JobToleration, ...]:
    return tuple(toleration(each) for each in texts)


def claims(flag: str, texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """`CLAIM:PATH`; one claim may be seen at several paths."""
    found: list[tuple[str, str]] = []
    for text in texts:
        claim, colon, path = text.partition(":")
        if not colon or not _OBJECT.fullmatch(claim) or not _is_absolute(path):
            raise invalid(f"--{flag} is invalid: `{text}`", "write it as CLAIM:/PATH")
        found.append((claim, path))
    return tuple(found)


def host_dirs(flag: str, texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """`HOST[:PATH]`; without a path the container sees it where the node has it."""
    found = []
    for text in texts:
        host, colon, path = text.partition(":")
        path = path if colon else host
        if not _is_absolute(host) or not _is_absolute(path):
            raise invalid(f"--{flag} is invalid: `{text}`", "write it as /FOLDER or /FOLDER:/PATH")
        found.append((host, path))
    return tuple(found)


def config_file(text: str) -> tuple[str, str]:
    """`FILE[:PATH]`: the file here, and where containers see it."""
    here, colon, path = text.partition(":")
    path = path if colon else here
    if not here or not _is_absolute(path) or path.endswith("/"):
        raise invalid(
            f"--config-file is invalid: `{text}`",
            "the path in the container must be absolute: FILE:/PATH",
        )
    return here, path


def secret_envs(flag: str, texts: Iterable[str]) -> tuple[SecretEnv, ...]:
    """`NAME=SECRET[:KEY]`."""
    found = []
    for text in texts:
        name, _, source = text.partition("=")
        secret, _, key = source.partition(":")
        if not _ENV.fullmatch(name) or not _OBJECT.fullmatch(secret):
            raise invalid(
                f"--{flag} is invalid: `{text}`", "write it as NAME=SECRET or NAME=SECRET:KEY"
            )
        found.append(SecretEnv(name, secret, key or name))
    return tuple(found)


def _check_key(flag: str, key: str) -> None:
    if not _KEY.fullmatch(key):
        raise invalid(
            f"--{flag} is invalid: `{key}` is no key",
            "a key has letters, digits, `-`, `_`, `.`, with or without `prefix/`",
        )


def _is_absolute(path: str) -> bool:
    return (
        path.startswith("/")
        and ":" not in path
        and "\0" not in path
        and ".." not in path.split("/")
    )


def version_of(now: float) -> str:
    """The version of a serving job that names none: the time on this machine, to the minute."""
    return time.strftime("%Y%m%d%H%M", time.localtime(now))
