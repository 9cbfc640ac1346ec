r"""The rules for names, label keys, label values and similar texts.

Each function lists the faults of a text in the words of `k8s.io/apimachinery/pkg/util/validation`;
an empty list is a good text.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = rf"({_NAME_PART})?"
_CONFIG_KEY: Final = r"[-._a-zA-Z0-9]+"
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_name_part = re.compile(_NAME_PART).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_name = re.compile(r"[-a-z0-9]+").fullmatch
_is_env_name = re.compile(r"[ -<>-~]+").fullmatch

_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
    "or '.', and must start and end with an "
    f"alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric "
    f"character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '{_LABEL_VALUE}')"
)
_NAME_PART_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_PART}')"
)


def subdomain_faults(text: str, limit: str = "characters") -> list[str]:
    """Most names: `a.b-c`."""
    faults = [] if len(text) <= 253 else [f"must be no more than 253 {limit}"]
    return faults if _is_subdomain(text) else [_SUBDOMAIN_RULE, *faults]


def label_faults(text: str, limit: str = "characters") -> list[str]:
    """Names that become a part of a DNS name: `a-b`."""
    if len(text) > 63:
        return [f"must be no more than 63 {limit}"]
    if _is_label(text):
        return []
    return ["must not contain dots" if _is_subdomain(text) else _LABEL_RULE]


def path_segment_faults(text: str) -> list[str]:
    """Names that only have to be a part of a URL (`system:node`)."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in text]


def qualified_name_faults(text: str) -> list[str]:
    """Label keys, resource names, finalizers: `example.com/name` or `name`.

    >>> qualified_name_faults("example.com/name"), qualified_name_faults("/name")
    ([], ['prefix part must be non-empty'])
    """
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            (
                f"a valid label key {_NAME_PART_RULE} with an optional DNS subdomain prefix "
                "and '/' (e.g. 'example.com/MyName')"
            )
        ]
    faults = []
    if slash:
        faults += (
            ["prefix part must be non-empty"]
            if not prefix
            else [f"prefix part {fault}" for fault in subdomain_faults(prefix, "bytes")]
        )
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    return faults if _is_name_part(name) else [*faults, f"name part {_NAME_PART_RULE}"]


def label_value_faults(text: str) -> list[str]:
    faults = [] if len(text) <= 63 else ["must be no more than 63 bytes"]
    return faults if _is_label_value(text) else [*faults, _LABEL_VALUE_RULE]


def config_key_faults(text: str) -> list[str]:
    """Keys of ConfigMaps and Secrets: file names."""
    faults = [] if len(text) <= 253 else ["must be no more than 253 characters"]
    if not _is_config_key(text):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        faults.append(
            f"{rule} (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation "
            f"is '{_CONFIG_KEY}')"
        )
    if text in (".", ".."):
        faults.append(f"must not be '{text}'")
    return faults


def port_name_faults(text: str) -> list[str]:
    """Names of container ports, and of target ports."""
    faults = [] if len(text) <= 15 else ["must be no more than 15 characters"]
    if not _is_port_name(text):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    elif not re.search("[a-z]", text):
        faults.append("must contain at least one letter (a-z)")
    elif "--" in text:
        faults.append("must not contain consecutive hyphens")
    elif text[0] == "-" or text[-1] == "-":
        faults.append("must not begin or end with a hyphen")
    return faults


_UNDERSCORED: Final = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_DOMAIN: Final = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_HEADER_NAME: Final = "[-A-Za-z0-9]+"


def search_domain_faults(text: str) -> list[str]:
    """Domains of a DNS search list: `a_b.c`."""
    faults = [] if len(text) <= 253 else ["must be no more than 253 characters"]
    if not re.fullmatch(_SEARCH_DOMAIN, text):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '_', '-' or '.', and must start and end "
            "with an alphanumeric character"
        )
        faults.append(
            f"{rule} (e.g. 'example.com', regex used for validation is '{_SEARCH_DOMAIN}')"
        )
    return faults


def header_name_faults(text: str) -> list[str]:
    if re.fullmatch(_HEADER_NAME, text):
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [f"{rule} (e.g. 'X-Header-Name', regex used for validation is '{_HEADER_NAME}')"]


def environment_name_faults(text: str) -> list[str]:
    return (
        []
        if _is_env_name(text)
        else [
            (
                "a valid environment variable name must consist only of printable ASCII characters "
                "other than '='"
            )
        ]
    )
