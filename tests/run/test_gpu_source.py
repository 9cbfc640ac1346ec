"""What a server reads for `--gpu-source` and its flags: named pages, pods that it searches for, or
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.edge.scripted import Reply, ScriptedServer, Stream, page
from tests.edge.twins import connection_to
from tests.waiting import until

from fairlead.cli.frame.parser import make_parser
from fairlead.cli.servers import cluster_exporter, console
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.errors import UserError
from fairlead.ports import GpuReadings
from fairlead.run.wiring import gpu_readings

OWN = "app.kubernetes.io/name=fairlead-gpu-exporter"
PATHS = (
    "/api/v1/pods",
    "/api/v1/namespaces/fairlead-nodes/pods",
    "/api/v1/namespaces/gpu-operator/pods",
)
SPACES = "/api/v1/namespaces"
NAMED = "--gpu-exporter=http://127.0.0.1:1/metrics"


def has_tried(readings: GpuReadings) -> bool:
    tally = readings.tally()
    return tally is not None and tally.failures > 0


@pytest.mark.parametrize("verb", [cluster_exporter, console], ids=["cluster-exporter", "console"])
@pytest.mark.parametrize(
    ("flags", "asked", "pages"),
    [
        ([], (PATHS[1], OWN), 0),
        ([NAMED], None, 1),
        ([NAMED, "--gpu-exporter-pods=app=x"], (PATHS[1], "app=x"), 1),
        (
            [
                "--gpu-exporter-pods=app=nvidia-dcgm-exporter",
                "--gpu-exporter-namespace=gpu-operator",
            ],
            (PATHS[2], "app=nvidia-dcgm-exporter"),
            0,
        ),
        (["--gpu-exporter-namespace="], (PATHS[0], OWN), 0),
    ],
    ids=[
        "nothing printed",
        "a page",
        "a page and pods",
        "pods of another namespace",
        "pods of all namespaces",
    ],
)
async def test_pods_are_searched_for_where_no_page_is_named(
    verb: object, flags: list[str], asked: tuple[str, str] | None, pages: int
) -> None:
    script: dict[str, list[Reply | Stream]] = {path: [page([])] for path in PATHS} | {
        f"watch {path}": [Stream(then="hold")] for path in PATHS
    }
    script[SPACES] = [page([])]
    args = make_parser(verb, "fairlead").parse(flags)  # type: ignore[arg-type]
    with ScriptedServer(script) as server:
        async with KubeApi(connection_to(server.url)) as api:
            readings = gpu_readings(args, None, WallClock(), api)
            running = asyncio.create_task(readings.run())
            searched = lambda: [each for each in server.seen if each.path != SPACES]  # noqa: E731
            await until(lambda: len(searched()) >= 2 if asked else has_tried(readings))
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            tally = readings.tally()
    assert {(each.path, each.query["labelSelector"]) for each in searched()} == (
        {asked} if asked else set()
    )
    assert tally is not None
    assert tally.read + tally.failing + tally.waiting == pages


@pytest.mark.parametrize(
    "flag",
    [
        "--gpu-exporter-port=0",
        "--gpu-exporter-port=70000",
        "--gpu-exporter-port=",
        "--gpu-exporter-pods= ",
    ],
)
def test_what_is_no_port_and_no_label_is_refused(flag: str) -> None:
    with pytest.raises(UserError):
        make_parser(cluster_exporter, "fairlead").parse([flag])
