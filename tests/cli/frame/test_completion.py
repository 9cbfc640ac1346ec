"""`arena completion`: a real bash completes commands, flags, and names from the cluster that the
line chooses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import run_command
from tests.programs import run_program

from fairlead.cli.frame.verbs import verbs_of
from fairlead.errors import UserError
from fairlead.model.snapshot import ClusterSnapshot

STAND_IN = """
arena() {
    echo "$*" >> "$ASKED"
    if [ "$1" = list ]; then printf 'NAME STATUS\\nbert RUNNING\\nmnist PENDING\\n'
    elif [ "$1 $2" = 'serve list' ]; then printf 'NAME TYPE\\nfast Custom\\n'
    else printf 'NAME  IP\\ngpu-1  1\\n----\\nAllocated/Total\\n1/2\\n'; fi
}
"""


def script(shell: str) -> str:
    return run_command(f"completion {shell}", ClusterSnapshot()).out


def completed(line: str, folder: Path) -> list[str]:
    """What bash offers at the end of the line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asking = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _arena_complete; printf '%s\\n' "
        f'"${{COMPREPLY[@]}}"'
    )
    env = {"PATH": "/usr/bin:/bin", "ASKED": str(folder / "asked")}
    text = f"{STAND_IN}\n{script('bash')}\n{asking}"
    done = run_program(["bash", "--norc", "-c", text], env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("arena li", ["list"]),
        ("arena top ", ["node", "job"]),
        ("arena -n x top j", ["job"]),
        ("arena get ", ["bert", "mnist"]),
        ("arena get m", ["mnist"]),
        ("arena delete bert m", ["mnist"]),
        ("arena top job b", ["bert"]),
        ("arena serve get ", ["fast"]),
        ("arena serve k", ["kserve"]),
        ("arena top node g", ["gpu-1"]),
        ("arena list --st", ["--status", "--strict"]),
        ("arena get bert --ex", ["--explain"]),
        ("arena nonsense ", []),
    ],
)
def test_bash(line: str, offered: list[str], tmp_path: Path) -> None:
    found = completed(line, tmp_path)
    assert [
        each for each in found if not each.startswith("-") or line.split(" ")[-1].startswith("-")
    ] == offered


def test_names_come_from_the_cluster_of_the_line(tmp_path: Path) -> None:
    completed("arena --context c -n team get b", tmp_path)
    completed("arena get --namespace = other b", tmp_path)
    assert (tmp_path / "asked").read_text().splitlines() == [
        "list --context c -n team",
        "list --namespace other",
    ]


def test_flags_cost_no_request(tmp_path: Path) -> None:
    completed("arena get --ex", tmp_path)
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_every_script(shell: str) -> None:
    text = script(shell)
    for verb in verbs_of("arena"):
        assert all(word in text for word in verb.words)
    assert "--explain" in text or "-l explain" in text


def test_another_shell() -> None:
    with pytest.raises(UserError) as caught:
        script("tcsh")
    assert caught.value.what == "Invalid shell 'tcsh'. The supported shells are bash, zsh and fish."
