"""The web configuration file of Prometheus exporters: TLS, passwords, headers, rate limit.

The file protects a page, so it is read strictly: an unknown key, a value of the wrong type, or a
file that protects nothing is an error that names its cause. The format is exporter-toolkit's
`web-configuration.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
import yaml
from msgspec import Struct, structs

from fairlead.model.refusal import Refusal
from fairlead.wire.files.strict_yaml import load_strict_yaml, yaml_trouble
from fairlead.wire.text.go_duration import parse_go_duration

NO_CLIENT, REQUEST, REQUIRE_ANY = "NoClientCert", "RequestClientCert", "RequireAnyClientCert"
VERIFY_GIVEN, REQUIRE_VERIFIED = "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
AUTH_TYPES: Final = (NO_CLIENT, REQUEST, REQUIRE_ANY, VERIFY_GIVEN, REQUIRE_VERIFIED)
"""From the weakest to the strongest; "" means the first."""
VERSIONS: Final = ("TLS10", "TLS11", "TLS12", "TLS13")
COST_MAX: Final = 18
"""The highest bcrypt cost that is accepted: a few seconds for a check. Cost 31 would take days."""
_HASH: Final = re.compile(r"\$2[abxy]\$(\d\d)\$[./A-Za-z0-9]{53}", re.ASCII)
_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Content-Security-Policy": (),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-Content-Type-Options": ("nosniff",),
    "X-XSS-Protection": (),
    "Strict-Transport-Security": (),
}
"""Headers that may be added, and the values that each may have (none listed: any value)."""
_SUITES: Final = {
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
"""OpenSSL's name for each of Go's `CipherSuites`. Suites of TLS 1.3 cannot be chosen, as in Go: "".
"""
_CURVES: Final = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}


class TlsServer(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `tls_server_config`, as the file spells them.

    Paths are relative to the file's folder.
    """

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    client_auth_type: str = NO_CLIENT
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[str, ...] = ()

    @property
    def ciphers(self) -> str:
        """OpenSSL's list of ciphers, "" = OpenSSL's default."""
        return ":".join(filter(None, (_SUITES[name] for name in self.cipher_suites)))

    @property
    def speaks_only_13(self) -> bool:
        """Whether suites are named, and none of them is of TLS 1.2."""
        return bool(self.cipher_suites) and not self.ciphers

    @property
    def curve(self) -> str:
        """OpenSSL's name of the only curve, "" = OpenSSL's default."""
        return _CURVES[self.curve_preferences[0]] if self.curve_preferences else ""


class WebConfig(Struct, frozen=True):
    """`tls` None: plain HTTP. `users`: names and bcrypt hashes, empty = no password.

    `headers` are added to every answer. At most one request per `interval_seconds` (0 = no limit)
    is served, after a burst of up to `burst` requests.
    """

    tls: TlsServer | None = None
    users: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    interval_seconds: float = 0.0
    burst: int = 0


class _Http(Struct, forbid_unknown_fields=True):
    http2: bool = True
    headers: dict[str, str] = {}


class _Rate(Struct, forbid_unknown_fields=True):
    interval: str | int = 0
    burst: int = 0


class _File(Struct, forbid_unknown_fields=True):
    tls_server_config: TlsServer | None = None
    http_server_config: _Http | None = None
    basic_auth_users: dict[str, str] | None = None
    rate_limit: _Rate | None = None


def parse_web_config(text: str | bytes) -> WebConfig | Refusal:
    """The configuration, or a Refusal with the reason.

    >>> parse_web_config("tls_server_config: {cert_fil: a}").reason
    'Object contains unknown field `cert_fil` - at `$.tls_server_config`'
    """
    try:
        found = msgspec.convert(load_strict_yaml(text) or {}, _File)
    except yaml.YAMLError as error:
        return Refusal(f"it is no YAML of this kind: {yaml_trouble(error)}")
    except msgspec.ValidationError as error:
        return Refusal(str(error))
    http, rate = found.http_server_config or _Http(), found.rate_limit or _Rate()
    server = found.tls_server_config or TlsServer()
    server = (
        server if server.client_auth_type else structs.replace(server, client_auth_type=NO_CLIENT)
    )
    tls = None if server == TlsServer() else server
    users = found.basic_auth_users or {}
    why = (
        (_tls_trouble(tls) if tls else "")
        or _users_trouble(users)
        or _headers_trouble(http.headers)
    )
    if not why and tls is None and not users:
        why = "it guards nothing: neither `tls_server_config` nor `basic_auth_users` has a value"
    try:
        interval = parse_go_duration(str(rate.interval))
    except ValueError as error:
        why = why or f"`rate_limit.interval`: {error}"
        interval = 0.0
    if interval and rate.burst < 1:
        why = why or f"`rate_limit.burst` is {rate.burst}: no request would be served"
    return (
        Refusal(why)
        if why
        else WebConfig(
            tls,
            users,
            {name: text for name, text in http.headers.items() if text},
            interval,
            rate.burst,
        )
    )


def _tls_trouble(tls: TlsServer) -> str:
    """Why these keys cannot configure a server; "" = they can."""
    for name, inline, file in (("cert", tls.cert, tls.cert_file), ("key", tls.key, tls.key_file)):
        if bool(inline) == bool(file):
            return (
                f"`tls_server_config` has {'both of' if file else 'neither of'} `{name}_file` and "
                f"`{name}`: it needs one of them"
            )
    if tls.client_ca and tls.client_ca_file:
        return (
            "`tls_server_config` has both of `client_ca_file` and `client_ca`: it needs one of them"
        )
    if tls.client_auth_type not in AUTH_TYPES:
        return f"`client_auth_type` is `{tls.client_auth_type}`, none of {', '.join(AUTH_TYPES)}"
    return _client_trouble(tls) or _version_trouble(tls)


def _client_trouble(tls: TlsServer) -> str:
    """Why these keys cannot authenticate clients; "" = they can."""
    authority = tls.client_ca or tls.client_ca_file
    if tls.client_auth_type == REQUIRE_ANY:
        return (
            f"`client_auth_type: {REQUIRE_ANY}` accepts a certificate of any issuer: write "
            f"`{REQUIRE_VERIFIED}`"
        )
    if authority and tls.client_auth_type == NO_CLIENT:
        return (
            f"`client_ca_file` is set and `client_auth_type` is `{NO_CLIENT}`: write "
            f"`{REQUIRE_VERIFIED}`"
        )
    if not authority and tls.client_auth_type in (VERIFY_GIVEN, REQUIRE_VERIFIED):
        return f"`client_auth_type: {tls.client_auth_type}` needs `client_ca_file`"
    if tls.client_allowed_sans and tls.client_auth_type != REQUIRE_VERIFIED:
        return f"`client_allowed_sans` needs `client_auth_type: {REQUIRE_VERIFIED}`"
    return ""


def _version_trouble(tls: TlsServer) -> str:
    """Why these versions, suites and curves cannot be used; "" = they can."""
    for name, version in (("min_version", tls.min_version), ("max_version", tls.max_version)):
        if version not in VERSIONS:
            return f"`{name}` is `{version}`, none of {', '.join(VERSIONS)}"
    if tls.max_version in ("TLS10", "TLS11"):
        return f"`max_version: {tls.max_version}` leaves nothing: TLS before 1.2 is not supported"
    if tls.min_version > tls.max_version:
        return f"`min_version` {tls.min_version} is above `max_version` {tls.max_version}"
    if unknown := [name for name in tls.cipher_suites if name not in _SUITES]:
        return f"`cipher_suites` has `{unknown[0]}`, which is none of {', '.join(_SUITES)}"
    if tls.speaks_only_13 and tls.max_version == "TLS12":
        return (
            "`cipher_suites` names none of TLS 1.2, and `max_version` is TLS12: no client could "
            "connect"
        )
    if unknown := [name for name in tls.curve_preferences if name not in _CURVES]:
        return f"`curve_preferences` has `{unknown[0]}`, which is none of {', '.join(_CURVES)}"
    if len(tls.curve_preferences) > 1:
        return (
            "`curve_preferences` names several curves: name one, or none to allow all usual curves"
        )
    return ""


def _users_trouble(users: Mapping[str, str]) -> str:
    """Why these users cannot be used; "" = they can. The hash is a secret and does not appear."""
    for name, text in users.items():
        found = _HASH.fullmatch(text)
        if not name or ":" in name:
            return (
                f"`basic_auth_users` has the name `{name}`: it must not be empty, nor contain a "
                "colon"
            )
        if found is None:
            return (
                f"the password of `{name}` in `basic_auth_users` is no bcrypt hash (`htpasswd "
                f"-nBC 10 {name}` makes one)"
            )
        if not 4 <= int(found[1]) <= COST_MAX:
            return (
                f"the bcrypt hash of `{name}` has cost {int(found[1])}: give 4 to {COST_MAX}, "
                "such as 10"
            )
    return ""


def _headers_trouble(headers: Mapping[str, str]) -> str:
    if unknown := [name for name in headers if name not in _HEADERS]:
        return (
            f"`http_server_config.headers` has `{unknown[0]}`, which is none of "
            f"{', '.join(_HEADERS)}"
        )
    for name, text in headers.items():
        if text and _HEADERS[name] and text not in _HEADERS[name]:
            return (
                f"`{name}` in `http_server_config.headers` is `{text}`, none of "
                f"{', '.join(_HEADERS[name])}"
            )
    if broken := [
        name for name, text in headers.items() if not text.isprintable() or not text.isascii()
    ]:
        return (
            f"`{broken[0]}` in `http_server_config.headers` has characters that no header may have"
        )
    return ""
