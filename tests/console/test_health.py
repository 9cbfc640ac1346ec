"""The page Health: each dependency is judged by what was observed, and only dependencies that are
in use can be broken.
"""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs
from tests.console.clusters import (
    EPOCH,
    cluster,
    gpu_node,
    pod,
    quota_tree,
    reading,
    shared_node,
    telemetry,
)
from tests.console.worlds import still_world

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.health import HealthFacts, LedgerLook, health_rows, health_sentence
from fairlead.console.http.health_answers import KEPT_SECONDS, HealthAnswers
from fairlead.console.pages.health import HealthRow
from fairlead.errors import StoreDown
from fairlead.model.dependency import DependencyLooks, ServerLook
from fairlead.model.node import Node
from fairlead.model.pod import Condition, Pod, PodPhase
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.records.rows import StoreFacts
from fairlead.model.resources import GPU_MEMORY
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source, SourceState

WELL = ServerLook("https://10.0.0.1:6443", "v1.36.3", 0.012, 0.0)
ANSWERED = DependencyLooks(WELL)
ORDER = [
    "cluster-api",
    "permissions",
    "prometheus",
    "gpu-telemetry",
    "cluster-exporter",
    "sharing-extender",
    "device-plugin",
    "quota-controller",
    "people-controller",
    "job-kinds",
    "fluid",
    "helm",
    "store",
    "usage-recorder",
    "clock-skew",
    "base-url",
]
"""The order in docs/spec/console.md."""


def rows(
    snapshot: ClusterSnapshot | None = None,
    looks: DependencyLooks | None = ANSWERED,
    **more: object,
) -> dict[str, HealthRow]:
    state = BoardState(snapshot or cluster([]), EPOCH)
    facts = HealthFacts(
        state.snapshot,
        tuple(each for each in state.occupancy.nodes if each.gpus_total),
        looks,
        False,
        3600.0,
        "/",
    )
    return {row.name: row for row in health_rows(structs.replace(facts, **more))}


def printed(row: HealthRow) -> str:
    return "; ".join(each.text for each in row.found)


def sources(*found: Source) -> ClusterSnapshot:
    return structs.replace(cluster([]), sources={each.name: each for each in found})


def test_all_of_the_contract_in_its_order() -> None:
    assert list(rows()) == ORDER


def test_the_api_server_with_address_version_and_latency() -> None:
    row = rows()["cluster-api"]
    assert (row.state, printed(row), row.setting) == (
        "ok",
        "https://10.0.0.1:6443 responds in 12 ms, version v1.36.3",
        None,
    )


def test_an_api_server_that_does_not_answer_fails_in_its_own_words() -> None:
    row = rows(
        looks=DependencyLooks(structs.replace(WELL, failure="no listener", hint="start it"))
    )["cluster-api"]
    assert (row.state, printed(row)) == ("fail", "no listener (start it)")
    assert row.setting is not None


def test_what_cannot_be_read_any_more_is_named_and_no_failure_of_the_whole() -> None:
    found = rows(
        sources(
            Source("nodes"),
            Source("pods", SourceState.FAILING, "timed out"),
            Source("mpijobs", SourceState.SYNCING),
        )
    )
    assert found["cluster-api"].state == "warn"
    assert "pods" in printed(found["cluster-api"]) and "mpijobs" in printed(found["cluster-api"])
    assert found["cluster-api"].sources == ["pods"]


def test_a_slow_api_server_needs_a_look() -> None:
    assert (
        rows(looks=DependencyLooks(structs.replace(WELL, seconds=1.01)))["cluster-api"].state
        == "warn"
    )


@pytest.mark.parametrize(
    ("forbidden", "state"), [("pods", "fail"), ("nodes", "fail"), ("mpijobs", "warn"), (None, "ok")]
)
def test_permissions(forbidden: str | None, state: str) -> None:
    row = rows(
        sources(Source("nodes"), *([Source(forbidden, SourceState.FORBIDDEN)] if forbidden else []))
    )["permissions"]
    assert (row.state, row.sources) == (state, [forbidden] if forbidden else [])
    assert forbidden is None or forbidden in printed(row)


def test_permissions_are_not_known_while_no_server_answers() -> None:
    silent = DependencyLooks(structs.replace(WELL, failure="no listener"))
    assert rows(sources(Source("nodes", SourceState.SYNCING)), silent)["permissions"].state == "off"


def test_prometheus_address_error_and_series() -> None:
    prometheus = ServerLook("http://prom:9090", "2.42.0", 0.003, series=120)
    assert rows()["prometheus"].state == "off"
    row = rows(looks=DependencyLooks(WELL, prometheus))["prometheus"]
    assert (row.state, printed(row)) == (
        "ok",
        "http://prom:9090 responds in 3 ms, version 2.42.0; it has 120 GPU series",
    )
    assert (
        rows(looks=DependencyLooks(WELL, structs.replace(prometheus, series=0)))["prometheus"].state
        == "warn"
    )
    row = rows(
        looks=DependencyLooks(
            WELL, structs.replace(prometheus, failure="Prometheus `http://prom:9090`: refused")
        )
    )["prometheus"]
    assert (row.state, printed(row), row.sources) == (
        "fail",
        "Prometheus `http://prom:9090`: refused",
        [],
    )
    assert row.setting is not None and "--prometheus" in row.setting.text


def test_values_that_fail_with_prometheus_are_reported_once() -> None:
    """The page warns of the source `gpu-telemetry`; the row of Prometheus covers it."""
    failing = DependencyLooks(WELL, ServerLook("http://prom:9090", failure="refused"))
    found = rows(sources(telemetry("failing", "refused")), failing)
    assert found["prometheus"].sources == ["gpu-telemetry"]


def test_telemetry_by_nodes() -> None:
    nodes = [gpu_node("a", 2), gpu_node("b", 2)]
    readings = [reading("a", 0), reading("a", 1), reading("b", 0), reading("b", 1, ratio=None)]

    def reported(gpus: list[object], source: Source) -> HealthRow:
        return rows(structs.replace(cluster(nodes, gpus=gpus), sources={source.name: source}))[
            "gpu-telemetry"
        ]

    row = reported(readings, telemetry())
    assert (row.state, printed(row)) == (
        "warn",
        "all cards of 1 of 2 GPU nodes report; not all cards report on b",
    )
    assert reported([*readings[:3], reading("b", 1)], telemetry()).state == "ok"
    assert reported([], telemetry()).state == "fail"
    assert reported(readings, telemetry("off")).state == "off"
    row = reported(readings, telemetry("failing", "no page answers", "look at them"))
    assert (row.state, printed(row)) == ("fail", "no page answers (look at them)")
    assert rows()["gpu-telemetry"].state == "off"


def test_a_broken_card_that_reports_does_not_replace_a_sound_one_that_does_not() -> None:
    """The row agrees with the pages' warning (`notices.series_missing`), which names the same
    nodes.
    """
    gpus = [reading("a", 0, healthy=False), reading("a", 1), reading("a", 2, ratio=None)]
    snapshot = structs.replace(
        cluster([gpu_node("a", 3)], gpus=gpus), sources={"gpu-telemetry": telemetry()}
    )
    warning = BoardState(snapshot, EPOCH).series_missing
    assert warning is not None and warning.values["nodes"] == "a"
    row = rows(snapshot)["gpu-telemetry"]
    assert (row.state, printed(row)) == (
        "warn",
        "all cards of 0 of 1 GPU node report; not all cards report on a",
    )


def component(name: str, app: str, ready: bool | None) -> Pod:
    conditions = () if ready is None else (Condition("Ready", str(ready)),)
    return structs.replace(
        pod(name, namespace="fairlead-system"),
        labels={"app.kubernetes.io/name": app},
        conditions=conditions,
    )


@pytest.mark.parametrize(
    ("ready", "state", "text"),
    [
        ([], "off", "no pod has the label app.kubernetes.io/name=fairlead-cluster-exporter"),
        ([True, True], "ok", "2 of 2 pods of fairlead-cluster-exporter ready, in fairlead-system"),
        (
            [True, False],
            "warn",
            "1 of 2 pods of fairlead-cluster-exporter ready, in fairlead-system",
        ),
        (
            [False, None],
            "fail",
            "0 of 2 pods of fairlead-cluster-exporter ready, in fairlead-system",
        ),
    ],
)
def test_a_component_by_its_pods(ready: list[bool | None], state: str, text: str) -> None:
    pods = [component(f"x-{n}", "fairlead-cluster-exporter", each) for n, each in enumerate(ready)]
    row = rows(cluster([], pods))["cluster-exporter"]
    assert (row.state, printed(row)) == (state, text)


def test_a_pod_that_has_ended_is_no_replica_that_is_missing() -> None:
    ended = structs.replace(
        component("old", "fairlead-cluster-exporter", False), phase=PodPhase.FAILED
    )
    row = rows(cluster([], [ended, component("new", "fairlead-cluster-exporter", True)]))[
        "cluster-exporter"
    ]
    assert (row.state, printed(row)) == (
        "ok",
        "1 of 1 pod of fairlead-cluster-exporter ready, in fairlead-system",
    )


def test_labels_of_components_are_those_that_are_deployed() -> None:
    """The labels in `settings` and in `deploy/` are the same."""
    from pathlib import Path

    import yaml

    from fairlead import settings

    deployed = {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
        for path in (Path(__file__).parents[2] / "deploy").glob("*.yaml")
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if "template" in each.get("spec", {})
    }
    assert deployed >= {
        settings.CLUSTER_EXPORTER_POD,
        settings.GPU_EXTENDER_POD,
        settings.NODE_AGENT_POD,
        settings.QUOTA_CONTROLLER_POD,
    }


def test_sharing_without_sharing_nodes_is_off_and_with_them_it_needs_a_controller() -> None:
    assert {
        name: rows(cluster([gpu_node("a", 1)]))[name].state
        for name in ("sharing-extender", "device-plugin")
    } == {
        "sharing-extender": "off",
        "device-plugin": "off",
    }
    node = shared_node("share-1")
    found = rows(cluster([node]))
    assert (found["sharing-extender"].state, found["device-plugin"].state) == ("warn", "ok")
    silent = structs.replace(
        node, name="share-2", labels={"cgpu": "true"}, allocatable={}, capacity={}
    )
    row = rows(cluster([node, silent]))["device-plugin"]
    assert (row.state, printed(row)) == (
        "warn",
        (
            "1 of 2 nodes that share GPUs offers parts of GPUs; no parts of GPUs are offered by "
            "share-2"
        ),
    )
    assert rows(cluster([silent]))["device-plugin"].state == "fail"
    unhealthy = structs.replace(node, allocatable={**node.allocatable, GPU_MEMORY: 0})
    assert rows(cluster([unhealthy]))["device-plugin"].state == "fail"


def test_the_quota_controller_is_wanted_where_there_is_a_tree() -> None:
    assert (
        rows(sources(Source("elasticquotatrees", SourceState.MISSING)))["quota-controller"].state
        == "off"
    )
    assert rows(sources(Source("elasticquotatrees")))["quota-controller"].state == "off"
    root = quota_tree()
    tree = structs.replace(
        sources(Source("elasticquotatrees")),
        quota=root,
        quota_tree=QuotaTree("elasticquotatree", "kube-system", root),
    )
    assert rows(tree)["quota-controller"].state == "warn"
    served = structs.replace(tree, pods=(component("q", "fairlead-quota-controller", True),))
    assert rows(served)["quota-controller"].state == "ok"
    broken = structs.replace(
        served,
        sources={
            "elasticquotatrees": Source(
                "elasticquotatrees", SourceState.FAILING, "min is above max"
            )
        },
    )
    row = rows(broken)["quota-controller"]
    assert (row.state, row.sources) == ("warn", ["elasticquotatrees"])
    assert printed(row).startswith("min is above max; 1 of 1 pod")


def test_kinds_of_jobs_with_the_versions_that_are_served_and_read() -> None:
    served = {
        "pytorchjobs.kubeflow.org": ("v1", "v9"),
        "mpijobs.kubeflow.org": ("v2beta1",),
        "jobs.other.io": ("v1",),
    }
    row = rows(looks=DependencyLooks(WELL, served=served))["job-kinds"]
    assert (row.state, printed(row)) == ("ok", "served: MPIJob v2beta1, PyTorchJob v1")
    assert rows(looks=DependencyLooks(WELL, served={}))["job-kinds"].state == "off"
    failing = sources(Source("pytorchjobs", SourceState.FAILING))
    assert rows(failing, DependencyLooks(WELL, served=served))["job-kinds"].state == "warn"


PEOPLE = DependencyLooks(WELL, served={"users.fairlead.io": ("v1",)})


def test_the_people_controller_is_wanted_where_users_are_served() -> None:
    assert rows(looks=DependencyLooks(WELL, served={}))["people-controller"].state == "off"
    assert rows(looks=DependencyLooks(WELL, served=None))["people-controller"].state == "off"
    absent = rows(looks=PEOPLE)["people-controller"]
    assert (absent.state, printed(absent)) == (
        "warn",
        "no pod has the label app.kubernetes.io/name=fairlead-people-controller",
    )
    assert absent.setting is not None and "parts.people=true" in absent.setting.text
    for is_ready, state in ((True, "ok"), (False, "fail")):
        made = component("p", "fairlead-people-controller", is_ready)
        one = structs.replace(cluster([]), pods=(made,))
        assert rows(one, PEOPLE)["people-controller"].state == state
    other = structs.replace(cluster([]), pods=(component("q", "fairlead-quota-controller", True),))
    assert rows(other, PEOPLE)["people-controller"].state == "warn"


def test_the_store_by_its_answer() -> None:
    look = ServerLook("db.example/fairlead", "postgresql 15.18", 0.002)
    row = rows(store=look)["store"]
    assert (row.state, printed(row), row.setting) == (
        "ok",
        "db.example/fairlead responds in 2 ms, version postgresql 15.18",
        None,
    )
    assert rows(store=structs.replace(look, seconds=1.1))["store"].state == "warn"
    gone = ServerLook("store", failure="the database does not answer", hint="look at its server")
    row = rows(store=gone)["store"]
    assert (row.state, printed(row)) == (
        "fail",
        "the database does not answer (look at its server)",
    )
    assert rows()["store"].state == "off"


@pytest.mark.parametrize(
    ("look", "state", "found"),
    [
        (None, "off", "this console has no store, and so no usage ledger"),
        (LedgerLook(), "off", "no usage recorder has written to this store"),
        (LedgerLook(9.6, holder="me"), "ok", "`me` records usage; its newest record is 10 s old"),
        (
            LedgerLook(120.0, gaps=2, holder="me"),
            "ok",
            "`me` records usage; its newest record is 120 s old; 2 times in the ledger without a "
            "recorder",
        ),
        (
            LedgerLook(121.0, holder="me"),
            "fail",
            "the newest record of usage is 121 s old: no usage recorder writes; the last was `me`",
        ),
        (
            LedgerLook(is_off=True),
            "off",
            "a laptop of more than 200 nodes does not record usage; start `fairlead up` with a "
            "smaller scenario",
        ),
        (
            LedgerLook(failure="the database does not answer"),
            "warn",
            "the database does not answer",
        ),
    ],
)
def test_the_usage_recorder_by_what_it_wrote(
    look: LedgerLook | None, state: str, found: str
) -> None:
    row = rows(ledger=look)["usage-recorder"]
    assert (row.state, printed(row)) == (state, found)


async def test_the_store_is_asked_once_in_a_while_and_names_what_it_answers() -> None:
    now, asked = [100.0], list[float]()
    health = HealthAnswers(lambda: now[0])

    async def facts() -> StoreFacts:
        asked.append(now[0])
        now[0] += 0.004
        if len(asked) > 1:
            raise StoreDown("the database does not answer", "look at its server")
        return StoreFacts("postgresql", "15.18", "db.example/fairlead", "0003", "1")

    look = await health.store_look(facts)
    assert (look.address, look.version, look.failure) == (
        "db.example/fairlead",
        "postgresql 15.18",
        "",
    )
    assert look.seconds == pytest.approx(0.004)
    assert await health.store_look(facts) == look
    now[0] += KEPT_SECONDS
    look = await health.store_look(facts)
    assert (look.failure, look.hint) == ("the database does not answer", "look at its server")
    assert len(asked) == 2


def test_fluid_by_what_is_served() -> None:
    assert (
        rows(looks=DependencyLooks(WELL, served={"datasets.data.fluid.io": ("v1alpha1",)}))[
            "fluid"
        ].state
        == "ok"
    )
    assert rows(looks=DependencyLooks(WELL, served={}))["fluid"].state == "off"
    assert rows(looks=DependencyLooks(WELL, served=None))["fluid"].state == "off"


@pytest.mark.parametrize(
    ("ahead", "state", "text"),
    [
        (0.0, "ok", "differ by at most 2 s"),
        (-1.9, "ok", "differ by at most 2 s"),
        (2.5, "warn", "2.5 s ahead of"),
        (-59.0, "warn", "59 s behind"),
        (61.0, "fail", "61 s ahead of"),
        (None, "off", "time is unknown"),
    ],
)
def test_clocks(ahead: float | None, state: str, text: str) -> None:
    row = rows(looks=DependencyLooks(structs.replace(WELL, ahead_seconds=ahead)))["clock-skew"]
    assert row.state == state and text in printed(row)


def test_a_simulated_cluster_plays_its_components_and_has_its_own_time() -> None:
    found = rows(cluster([shared_node("s")]), is_simulated=True)
    assert {
        found[name].state for name in ("cluster-exporter", "sharing-extender", "device-plugin")
    } == {"ok"}
    assert (found["clock-skew"].state, found["clock-skew"].setting) == ("off", None)


def test_a_saved_snapshot_has_no_servers() -> None:
    found = rows(looks=None)
    assert {
        found[name].state for name in ("cluster-api", "permissions", "prometheus", "clock-skew")
    } == {"off"}


def test_the_sentence_names_what_is_worst() -> None:
    silent = DependencyLooks(structs.replace(WELL, failure="no listener"))
    assert health_sentence(rows().values()).text == "All dependencies in use are OK."
    assert health_sentence(rows(looks=silent).values()).text == "1 of 3 dependencies in use failed."
    slow = DependencyLooks(structs.replace(WELL, seconds=2.0))
    assert health_sentence(rows(looks=slow).values()).text == (
        "1 of 4 dependencies in use needs attention."
    )


class Servers:
    """Dependencies that count their requests, and may never answer."""

    def __init__(self, hangs: bool = False) -> None:
        self.asked = 0
        self.hangs = hangs

    async def look(self) -> DependencyLooks:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        return DependencyLooks(WELL)


async def test_servers_are_asked_once_in_a_while_however_many_look() -> None:
    now = [100.0]
    health, servers = HealthAnswers(lambda: now[0]), Servers()
    assert (
        await asyncio.gather(*(health.looks(servers, "x") for _ in range(20)))
        == [DependencyLooks(WELL)] * 20
    )
    now[0] += KEPT_SECONDS - 0.1
    await health.looks(servers, "x")
    assert servers.asked == 1
    now[0] += 0.2
    await health.looks(servers, "x")
    assert servers.asked == 2


async def test_a_server_that_never_answers_fails_and_is_not_asked_again_beside_itself() -> None:
    health, servers = HealthAnswers(patience=0.01), Servers(hangs=True)
    for _ in range(3):
        looks = await health.looks(servers, "my-cluster")
        assert looks.api.failure == "`my-cluster` has not answered for 0.01 s"
    assert servers.asked == 1


async def test_it_answers_before_the_caches_are_filled() -> None:
    from fairlead.apps.console_server import ConsoleServer

    server = ConsoleServer(
        structs.replace(
            still_world(sources(Source("nodes", SourceState.SYNCING)), is_ready=False),
            dependencies=Servers(),
        )
    )
    facts = await HealthAnswers().facts(server.world, server.board_states, 60.0, "/")
    found = {row.name: row.state for row in health_rows(facts)}
    assert (found["cluster-api"], found["gpu-telemetry"]) == ("warn", "off")


def test_nodes_without_gpus_are_no_nodes_that_report() -> None:
    assert rows(cluster([Node("cpu")]))["gpu-telemetry"].state == "off"
