"""The manual page as `man` would show it: groff prints no warnings, and every command and flag is
present.
"""

from __future__ import annotations

from pathlib import Path

from tests.programs import run_program

from fairlead.cli.frame.verbs import verbs_of

PAGE = Path(__file__).resolve().parents[2] / "man" / "arena.1"


def shown() -> tuple[str, str]:
    """The text, and the warnings."""
    command = ["groff", "-k", "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=200n", str(PAGE)]
    done = run_program(command, check=True)
    return done.stdout, done.stderr


def test_the_manual_page() -> None:
    text, warnings = shown()
    assert warnings == ""
    assert "arena - submit and look at GPU work on Kubernetes" in text
    for verb in verbs_of("arena"):
        assert f"   arena {verb.name}" in text
    for words in (
        "--gpumemory N",
        "(required)",
        "-n NS",
        "KUBECONFIG",
        "130",
        "~/.arena/config",
        "prometheus_address",
    ):
        assert words in text
