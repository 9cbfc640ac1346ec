"""Which values count as a secret in plain text."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.rules.components.secrets import plain_secrets


@pytest.mark.parametrize(
    "values",
    [
        {"password": "x"},
        {"db": {"adminPassword": "x"}},
        {"users": [{"token": "x"}]},
        {"accessKey": "AKIA"},
        {"access_key_secret": "x"},
        {"accessKeys": "x"},
        {"clientSecret": "abc"},
        {"secret": "Two Words"},
        {"api-key2": "x"},
        {"url": "postgresql://ann:pw@db/fairlead"},
        {"text": "-----BEGIN RSA PRIVATE KEY-----\n"},
    ],
)
def test_a_secret(values: dict[str, Any]) -> None:
    assert len(plain_secrets(values)) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"password": ""},
        {"existingSecret": "console-db"},
        {"passwordSecretRef": {"name": "db", "key": "password"}},
        {"secretName": "tls"},
        {"passwordKey": "db-password"},
        {"automountServiceAccountToken": True},
        {"pullSecrets": ["registry"]},
        {"url": "https://charts.example/fluid"},
        {"tokenExpirationSeconds": 3600},
        {"crdUpgrade": {"enabled": False}},
    ],
)
def test_no_secret(values: dict[str, Any]) -> None:
    assert plain_secrets(values) == []
