"""A team is let in on a laptop: tests/kube/test_team.py has the same on a real control plane."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kube.laptop_team import running_laptop_team
from tests.kube.team_line import user
from tests.kube.team_walk import ROOT, bound, walk
from tests.waiting import wait_until


@pytest.mark.turns(2, 1)
def test_a_team_is_let_in_works_and_is_let_out(tmp_path: Path) -> None:
    with running_laptop_team(tmp_path / "laptop.log", ROOT, user("ruth", role="admin")) as team:
        wait_until("Ruth has rights", lambda: bound(team, "ruth"))
        walk(team, team.visitor("ruth"))
