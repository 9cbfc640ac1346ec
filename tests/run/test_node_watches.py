"""A process that runs on every node keeps its watches open long: 1,000 nodes begin few of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml
from tests.cli.arena import environment
from tests.edge.kubeconfigs import one_kubeconfig
from tests.edge.scripted import ScriptedServer, Stream, page
from tests.kube.component import Component
from tests.kube.servers import FAIRLEAD
from tests.waiting import wait_until

HOLD = Stream(then="hold")
LISTS = ("/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces/kube-system/configmaps")
WATCHES_A_SECOND = 1.2
"""What 1,000 nodes may begin, by the mean of the length that is asked for."""
SHORTEST, LONGEST = 1800, 3600


def test_1000_node_agents_begin_about_one_watch_a_second(tmp_path: Path) -> None:
    script = {path: [page([])] for path in LISTS} | {f"watch {path}": [HOLD] for path in LISTS}
    with (
        tempfile.TemporaryDirectory(prefix="kubelet-") as short,  # the path of a socket is short
        ScriptedServer({**script}) as server,
    ):
        (Path(short) / "device-plugins").mkdir()
        config = tmp_path / "config"
        made = one_kubeconfig(cluster={"server": server.url}, user={"token": "t"})
        config.write_text(yaml.safe_dump(made), encoding="utf-8")
        argv = [
            *(*FAIRLEAD, "device-plugin", "--node=n", "--backend=sim", "--sim-gpus=1xTesla-T4"),
            *(f"--kubeconfig={config}", "--listen=127.0.0.1:0", "--test-image=none"),
            *(f"--{name}-dir={tmp_path / name}" for name in ("cdi", "state", "run")),
            f"--kubelet-dir={short}",
        ]
        agent = Component("agent", argv, tmp_path / "log", environment(tmp_path))
        try:
            agent.start()
            asked = lambda: [each.query for each in server.seen if "watch" in each.query]  # noqa: E731
            wait_until(
                lambda: f"it watches: {server.seen} {agent.log_tail()}",
                lambda: len(asked()) == len(LISTS),
            )
        finally:
            agent.stop()
    seconds = [int(each["timeoutSeconds"]) for each in asked()]
    assert all(SHORTEST <= each <= LONGEST for each in seconds), seconds
    assert 1000 * len(seconds) / ((SHORTEST + LONGEST) / 2) <= WATCHES_A_SECOND
