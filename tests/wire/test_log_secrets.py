"""Logs lose what is a secret by its name or its form, and keep what a reader needs."""

from __future__ import annotations

import pytest

from fairlead.wire.text.log_secrets import log_without_secrets
from fairlead.wire.text.secret_words import LONGEST_TEXT

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLXBsYW50ZWQ"
KEY = "-----BEGIN EC PRIVATE KEY-----\nplanted\nplanted\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        f"asked with {JWT}",
        f"Authorization: Bearer {JWT}",
        "clone https://ann:planted@git.example/a",
        "HF_TOKEN=planted",
        'level=info password="planted words"',
        '{"apiKey": "planted"}',
        "got ghp_plantedplantedplantedplantedplanted",
        "got hf_plantedplantedplanted from the file",
        "AKIAPLANTEDPLANTED00",
        "joined with abcdef.0123456789abcdef",
        "logged in with sha256~planted-planted_planted0planted0planted0000",
        "got hvs.CAESIplantedplantedplanted of vault",
        "got ya29.a0Plantedplanted_planted",
        "map?k=AIzaSyPlantedplantedplantedplantedplanted0",
        "got GOCSPX-plantedplantedplantedplante",
        "got npm_plantedplantedplantedplantedplanted0000",
        "got pypi-AgEIcHlwaS5vcmcplantedplanted",
        "got glrt-plantedplantedplanted",
        "got sk_live_plantedplantedplanted",
        "AWS_SECRET_ACCESS_KEY wJalrPlanted/K7MDENG/bPxRfiCYplantedKEY",
        "  aws_secret_access_key\t\t'wJalrPlanted/K7MDENG/bPxRfiCYplantedKEY' from the file",
        "A_B AWS_SECRET_ACCESS_KEY planted0",
        "  DB_PASSWORD   planted-planted",
        KEY,
    ],
)
def test_a_secret_is_hidden(secret: str) -> None:
    shown = log_without_secrets(f"before\n{secret}\nafter\n")
    assert "planted" not in shown.lower()
    assert JWT not in shown
    assert "0123456789abcdef" not in shown
    assert shown.startswith("before\n") and "<redacted>" in shown and shown.endswith("after\n")


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-28T02:00:00Z level=warn pod default/nb-1 uid=0f3a1b2c-0000-4000-8000-1234567890ab",
        "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76: 4 GiB of 15",
        "image fairlead@sha256:" + "ab" * 32,
        "node cn-zhangjiakou.192.168.3.184 is ready",
        "the API server at https://10.0.0.1:6443 does not answer",
        "fairlead-quota-controller-6bb7d5-abcde",
        "HF_TOKEN environment variable is missing",
        "AWS_SECRET_ACCESS_KEY is not set",
        "TOKEN_PATH /var/run/secrets/kubernetes.io/serviceaccount/token",
        "MAX_TOKENS 12345678",
        "image fairlead@sha256:" + "cd" * 32 + " is pulled as sha256~latest",
    ],
)
def test_what_a_reader_needs_stays(line: str) -> None:
    assert log_without_secrets(line + "\n") == line + "\n"


def test_a_long_log_keeps_its_end_and_no_part_of_a_key() -> None:
    rest = KEY.partition("\n")[2] + "\n"
    filler = "a line of a log\n" * (LONGEST_TEXT // 16 - 20)
    shown = log_without_secrets("first\n" + KEY + "\n" + "x" * 400 + "\n" + filler)
    assert "first" not in shown and shown.endswith("a line of a log\n")
    after = filler + "y" * (LONGEST_TEXT - len(rest) - len(filler) + 4)
    cut = log_without_secrets("-----BEGIN EC PRIVATE KEY-----\n" + rest + after)
    assert "planted" not in cut and "END EC" not in cut
    assert cut.startswith("<redacted>\na line")
