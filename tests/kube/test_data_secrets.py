"""Keys of data in no output: that of document 004's volume, which stands in a PersistentVolume, and
those of an object store, which stand in a Secret.

The laptop is asked as a whole, while a data set over each source is Bound: every route of the
console as administrator and as researcher, commands, records, store, snapshot, bug report, logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kube.fluid import DRIVER
from tests.kube.laptop_team import LaptopTeam, running_laptop_team
from tests.kube.outputs import (
    argv_output,
    command_outputs,
    record_outputs,
    report_output,
    route_outputs,
)
from tests.kube.quota_line import bounded
from tests.kube.servers import run_fairlead
from tests.kube.team_line import group, user
from tests.kube.team_walk import bound
from tests.waiting import wait_until

from fairlead.wire.data.stand_in import stand_in_objects

MANIFEST = Path(__file__).parents[2] / "examples" / "fashion-mnist.yaml"
SPACE, CLAIM = "demo-ns", "fashion-demo-pvc"
SET, STORE = f"{CLAIM}-acc", "faces"
VOLUME_KEY = "AKSECRET-of-the-volume"
STORE_KEYS = {"accessKeyId": "an-id-that-is-secret", "accessKeySecret": "a-key-that-is-secret"}
SECRETS = (VOLUME_KEY, *STORE_KEYS.values())
ROOT = bounded("root", 40, 40, children=[bounded("root.a", 0, 40, [SPACE])])
COMMANDS = {
    f"data list -n {SPACE}": 0,
    f"dataset list -n {SPACE} -o json": 0,
    f"dataset list -n {SPACE} -o yaml": 0,
    f"dataset list -n {SPACE} -o wide": 0,
    f"dataset show {SET} -n {SPACE} -o json": 0,
    f"dataset show {SET} -n {SPACE} -o yaml": 0,
    f"dataset show {STORE} -n {SPACE} -o json": 0,
    f"dataset show {STORE} -n {SPACE} -o yaml": 0,
    f"dataset show {STORE} -n {SPACE}": 0,
    f"dataset accelerate {CLAIM} -n {SPACE} --dry-run": 1,
    f"dataset add more -n {SPACE} --mount oss://bucket/a --from-secret oss-keys --dry-run": 0,
    f"dataset add more -n {SPACE} --mount oss://b --option fs.oss.accessKeySecret={VOLUME_KEY}": 1,
    "operation list -o json": 0,
    "operation list -o yaml": 0,
    "component list -o json": 0,
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaptopTeam]:
    """A laptop with both data sets, Bound; Ann is an administrator, Eve a researcher of theirs."""
    people = (group("ones", "root.a"), user("ann", role="admin"), user("eve", "ones"))
    log = tmp_path_factory.mktemp("laptop") / "laptop.log"
    with running_laptop_team(log, ROOT, *people, speed=10) as made:
        admin, kubeconfig = made.cluster.admin, made.laptop.kubeconfig
        admin.apply(stand_in_objects())
        admin.run(
            *("-n", "fluid-system", "rollout", "status", "deployment/dataset-controller"),
            "--timeout=120s",
        )
        wait_until("the node has Fluid's driver", lambda: DRIVER in str(admin.get("csinodes")))
        file = made.cluster.folder / "volume.yaml"
        text = MANIFEST.read_text(encoding="utf-8")
        file.write_text(text.replace("AKSECRET", VOLUME_KEY), encoding="utf-8")
        admin.run("create", "-f", str(file))
        literals = [f"--from-literal={name}={value}" for name, value in STORE_KEYS.items()]
        admin.run("create", "secret", "generic", "oss-keys", "-n", SPACE, *literals)
        words = ("--workers=1", "--quota=1Gi", f"--namespace={SPACE}")
        run_fairlead(kubeconfig, "dataset", "accelerate", CLAIM, *words)
        source = ("--mount=oss://bucket/faces", "--endpoint=oss.example", "--from-secret=oss-keys")
        run_fairlead(kubeconfig, "dataset", "add", STORE, *source, *words)
        for name in ("ann", "eve"):
            wait_until(f"{name} has rights", lambda name=name: bound(made, name))
        yield made


@pytest.mark.turns(2, 1)
def test_no_output_has_a_key(team: LaptopTeam, tmp_path: Path) -> None:
    found = dict(_outputs(team, tmp_path))
    # what is searched is what it seems to be
    for title in ("ann: GET /datasets", "eve: GET /datasets", "the log", "the snapshot"):
        assert found[title], title
    assert SET in found["ann: GET /datasets"] and SET in found["eve: GET /datasets"]
    assert "oss-keys" in found[f"ann: GET /datasets/{SPACE}/{STORE}"]
    assert any(SET in text for title, text in found.items() if title.startswith("record "))
    assert "fs.oss.accessKeySecret" in found[f"dataset show {STORE} -n {SPACE} -o json"]
    leaks = [(title, key) for title, text in found.items() for key in SECRETS if key in text]
    assert leaks == []


def _outputs(team: LaptopTeam, folder: Path) -> Iterator[tuple[str, str]]:
    admin, component = team.cluster.admin, team.laptop.component
    own = team.visitor("ann")
    _, listed = own.ask("/operations")
    places = {
        "dataset": f"/datasets/{SPACE}/{STORE}",
        "dataset_blockers": f"/datasets/{SPACE}/{SET}/blockers",
        "operation": f"/operations/{listed['items'][0]['id']}",
        "component": "/components/fluid",
    }
    for who, visitor in (("ann", own), ("eve", team.visitor("eve"))):
        for title, status, text in route_outputs(visitor.ask, who, places):
            is_named = any(title.endswith(f" {place}") for place in places.values())
            assert not (who == "ann" and is_named) or status == 200, (title, text)
            yield title, text
    yield f"ann: GET /datasets/{SPACE}/{SET}", str(own.ask(f"/datasets/{SPACE}/{SET}"))
    shown = {f"operation show {each['id']} -o json": 0 for each in listed["items"]}
    yield from command_outputs(team.laptop.kubeconfig, folder, {**COMMANDS, **shown})
    yield from record_outputs(admin)
    yield report_output(VOLUME_KEY)
    yield argv_output(component.pid)
    yield "the log", component.log.read_text(encoding="utf-8")
    for file in team.laptop.state_dir.rglob("*"):
        if file.is_file():
            yield f"file {file.name}", file.read_bytes().decode(errors="replace")
