"""A simulated cluster that serves the kinds of people."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.arena import environment, run_main
from tests.contracts.api_client import ApiClient
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.sim.objects import StillClock

from fairlead.run.quota_demo import SPACES, demo_tree
from fairlead.wire.people.definitions import people_definitions

Object = dict[str, Any]
USERS = "/apis/fairlead.io/v1/namespaces/kube-ai/users"
GROUPS = "/apis/fairlead.io/v1/namespaces/kube-ai/usergroups"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Cluster:
    """A cluster with users, in which this command's user is the administrator."""

    def __init__(self, server: SimulatedServer, home: Path) -> None:
        self.api = ApiClient("simulated", server.kubeconfig)
        self.do = server.do
        self._server, self._home = server, home

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = environment(self._home, KUBECONFIG=str(self._server.kubeconfig))
        return run_main("fairlead", words, env)

    def done(self, *words: str) -> str:
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def refused(self, *words: str) -> str:
        ended = self.run(*words)
        assert (ended.returncode, ended.stdout) == (1, ""), ended
        return ended.stderr

    def user(self, name: str) -> Object:
        found: Object = self.api.ask("GET", f"{USERS}/{name}").body
        return found

    def group(self, name: str) -> Object:
        found: Object = self.api.ask("GET", f"{GROUPS}/{name}").body
        return found

    def set_status(self, path: str, **status: Any) -> None:
        """As the people controller does."""
        answer = self.api.ask("PATCH", f"{path}/status", {"status": status}, headers=MERGE)
        assert answer.status == 200, answer.message

    def make_bound(self, name: str, *spaces: str) -> None:
        """The user has a ServiceAccount and namespaces."""
        body = {"metadata": {"name": name, "labels": {"fairlead.io/user": name}}}
        self.api.ask("POST", "/api/v1/namespaces/kube-ai/serviceaccounts", body)
        self.set_status(
            f"{USERS}/{name}",
            serviceAccount={"name": name, "namespace": "kube-ai"},
            namespaces=list(spaces),
            conditions=[{"type": "Ready", "status": "True", "reason": "Bound"}],
        )

    def make_pod(self, user: str, space: str) -> None:
        pod = {
            "metadata": {"name": "work", "labels": {"arena.kubeflow.org/console-user": user}},
            "spec": {"containers": [{"name": "a", "image": "a:1"}]},
        }
        answer = self.api.ask("POST", f"/api/v1/namespaces/{space}/pods", pod)
        assert answer.status == 201, answer.message


@contextmanager
def running_cluster(home: Path) -> Iterator[Cluster]:
    with simulated_server(home, StillClock()) as server:
        for name in ("kube-ai", *SPACES):
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            server.do(lambda cluster, place=place: cluster.create(place))
        for obj in (*people_definitions(), demo_tree("leaf")):
            server.do(lambda cluster, obj=obj: cluster.create(obj))
        yield Cluster(server, home)
