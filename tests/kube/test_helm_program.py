"""`ports.Helm` over the real Helm 3 and Helm 4, on a real API server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.helm import HELMS
from tests.kube.programs import program
from tests.kube.small_chart import write_small_chart
from tests.waiting import until

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.helm.helm_blocking import find_helm
from fairlead.edge.helm.helm_program import HelmProgram
from fairlead.errors import OutsideError, UserError
from fairlead.model.operations.operation import HelmRelease, HelmStep

SECRET = "s3cret-of-the-test"

pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        yield plane


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_chart(tmp_path_factory.mktemp("chart")))


class Fixed:
    """One of the two programs, and a namespace of its own."""

    def __init__(self, name: str, cluster: ControlPlane, chart: str) -> None:
        self.namespace = f"of-{name}-{next(_numbers)}"
        self.chart = chart
        self.cluster = cluster
        environment = {**os.environ, "FAIRLEAD_HELM": str(program(name))}
        self.helm = HelmProgram(_connection(cluster.kubeconfig), environment)

    def step(self, verb: Any = "install", *, seconds: float = 60.0, **values: Any) -> HelmStep:
        return HelmStep(verb, "small", self.namespace, self.chart, "1.2.3", values, seconds=seconds)

    async def found(self) -> HelmRelease:
        found = await self.helm.release("small", self.namespace)
        assert found is not None
        return found

    def color(self) -> str:
        words = ("configmap", "small-settings", "-n", self.namespace)
        return self.cluster.admin.run("get", *words, "-o", "jsonpath={.data.color}")

    async def pending(self, operation: str) -> asyncio.Task[None]:
        """A run that waits in its hook."""
        step = self.step("install", seconds=600, hasHook=True)
        task = asyncio.create_task(self.helm.carry_out(step, operation))

        async def is_pending() -> bool:
            release = await self.helm.release("small", self.namespace)
            return release is not None and release.status.startswith("pending-")

        await until(is_pending, pause_seconds=0.3)
        return task


_numbers = iter(range(1000))


@pytest.fixture(params=HELMS)
def fixed(request: pytest.FixtureRequest, cluster: ControlPlane, chart: str) -> Fixed:
    return Fixed(request.param, cluster, chart)


async def test_a_release_from_its_installation_to_its_end(fixed: Fixed) -> None:
    helm = fixed.helm
    assert await helm.release("small", fixed.namespace) is None

    await helm.carry_out(fixed.step(color="green"), "aaa111")
    assert await fixed.found() == HelmRelease(
        *("small", fixed.namespace, "deployed", 1, "small", "1.2.3", "9"),
        operation="aaa111",
        deployed=1,
        is_own=True,
    )
    assert fixed.color() == "green"
    listed = [each for each in await helm.releases() if each.namespace == fixed.namespace]
    assert [(each.name, each.status, each.chart_version) for each in listed] == [
        ("small", "deployed", "1.2.3")
    ]
    # definitions are Fairlead's to apply
    definitions = fixed.cluster.admin.run("get", "crd", "--ignore-not-found", "-o", "name")
    assert "smalls.test.fairlead.io" not in definitions

    await helm.carry_out(fixed.step("upgrade", color="blue"), "bbb222")
    assert fixed.color() == "blue"
    assert (await fixed.found()).operation == "bbb222"

    await helm.carry_out(fixed.step("upgrade"), "bbb333")
    assert fixed.color() == "red", "no value of the last revision is taken over"

    back = HelmStep("rollback", "small", fixed.namespace, revision=1)
    await helm.carry_out(back, "ccc333")
    assert fixed.color() == "green"
    release = await fixed.found()
    assert (release.revision, release.deployed, release.status) == (4, 4, "deployed")
    assert (release.is_own, release.rolled_back_to) == (True, 1)

    gone = HelmStep("uninstall", "small", fixed.namespace)
    await helm.carry_out(gone, "ddd444")
    assert await helm.release("small", fixed.namespace) is None
    await helm.carry_out(gone, "ddd444")  # once more: it is gone already


async def test_installing_twice_is_an_upgrade_of_the_same_release(fixed: Fixed) -> None:
    await fixed.helm.carry_out(fixed.step(color="green"), "aaa111")
    await fixed.helm.carry_out(fixed.step(color="green"), "aaa111")
    assert (await fixed.found()).status == "deployed"


async def test_an_upgrade_of_nothing_is_refused(fixed: Fixed) -> None:
    with pytest.raises(OutsideError) as caught:
        await fixed.helm.carry_out(fixed.step("upgrade"), "aaa111")
    assert "has no deployed releases" in caught.value.what


async def test_a_run_that_was_ended_names_its_operation(fixed: Fixed) -> None:
    task = await fixed.pending("eee555")
    release = await fixed.found()
    assert (release.status, release.operation, release.deployed) == ("pending-install", "eee555", 0)
    with pytest.raises(OutsideError) as caught:
        await fixed.helm.carry_out(fixed.step(), "fff666")
    assert caught.value.system == "helm"
    assert "helm history RELEASE" in caught.value.hint
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ended = await fixed.found()
    assert ended.status in ("failed", "pending-install")
    assert (ended.operation, ended.is_own) == ("eee555", True)
    await fixed.helm.carry_out(HelmStep("uninstall", "small", fixed.namespace), "eee555")
    assert await fixed.helm.release("small", fixed.namespace) is None


async def test_what_a_chart_makes(fixed: Fixed) -> None:
    objects = await fixed.helm.render(fixed.step(hasSecond=True, hasHook=True))
    assert sorted((each["kind"], each["metadata"]["name"]) for each in objects) == [
        ("ConfigMap", "small-second"),
        ("ConfigMap", "small-settings"),
        ("CustomResourceDefinition", "smalls.test.fairlead.io"),
    ]
    assert await fixed.helm.release("small", fixed.namespace) is None


async def test_bad_values_are_named(fixed: Fixed) -> None:
    with pytest.raises(OutsideError) as caught:
        await fixed.helm.render(fixed.step(replicas="many"))
    assert "replicas" in caught.value.what
    assert caught.value.hint == "correct the values that are named"


async def test_a_chart_that_does_not_exist(fixed: Fixed) -> None:
    with pytest.raises(OutsideError) as caught:
        await fixed.helm.render(HelmStep("install", "small", "here", "/nowhere/chart"))
    assert "/nowhere/chart" in caught.value.what
    assert caught.value.hint.startswith("check the chart's address")


async def test_neither_values_nor_credentials_are_in_the_arguments(fixed: Fixed) -> None:
    """Of all processes while Helm runs, and in no file of its folder."""
    before = fixed.step(seconds=600, hasHook=True, color=SECRET)
    task = asyncio.create_task(fixed.helm.carry_out(before, "abc123"))
    try:

        async def is_there() -> bool:
            return await fixed.helm.release("small", fixed.namespace) is not None

        await until(is_there, pause_seconds=0.3)
        lines = [line for line in _command_lines() if fixed.namespace in line]
        assert lines, "Helm runs"
        assert not [line for line in lines if SECRET in line]
        assert all("--kubeconfig=/dev/fd/" in line for line in lines)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_plugins_and_settings_of_the_user_have_no_effect(
    cluster: ControlPlane, chart: str, tmp_path: Path
) -> None:
    """A plugin of this kind would answer for a chart's address."""
    environment = {
        **os.environ,
        "FAIRLEAD_HELM": str(program("helm3")),
        "HELM_PLUGINS": str(tmp_path),
        "HELM_NAMESPACE": "other",
        "HELM_KUBEAPISERVER": "http://127.0.0.1:9",
        "KUBECONFIG": "/nowhere",
    }
    _write_plugin(tmp_path / "trap")
    helm = HelmProgram(_connection(cluster.kubeconfig), environment)
    assert await helm.release("small", "default") is None
    with pytest.raises(OutsideError):
        await helm.render(HelmStep("install", "small", "default", "trap://host/chart.tgz"))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "name", ["--kubeconfig=x", "-h", "a b", "$(id)", "../x", "", "UPPER", "a" * 54, "a\nb"]
)
async def test_names_that_are_no_names_are_refused(fixed: Fixed, name: str) -> None:
    with pytest.raises(UserError):
        await fixed.helm.release(name, "default")
    with pytest.raises(UserError):
        await fixed.helm.release("small", name if len(name) != 54 else "a" * 64)
    for verb in ("install", "upgrade", "rollback", "uninstall"):
        step = HelmStep(verb, name, "default", fixed.chart)  # type: ignore[arg-type]
        with pytest.raises(UserError):
            await fixed.helm.carry_out(step, "abc123")


@pytest.mark.parametrize(
    ("chart", "version"), [("--post-renderer=/bin/sh", ""), ("", ""), ("small", "--repo=x")]
)
async def test_charts_that_are_flags_are_refused(fixed: Fixed, chart: str, version: str) -> None:
    with pytest.raises(UserError):
        await fixed.helm.render(HelmStep("install", "small", "default", chart, version))


async def test_an_api_server_that_does_not_answer(chart: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: "
        "{cluster: c}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]}"
    )
    environment = {**os.environ, "FAIRLEAD_HELM": str(program("helm3"))}
    with pytest.raises(OutsideError) as caught:
        await HelmProgram(_connection(kubeconfig), environment).releases()
    assert caught.value.system == "kubernetes"


async def test_no_program(cluster: ControlPlane, tmp_path: Path) -> None:
    helm = HelmProgram(_connection(cluster.kubeconfig), {"PATH": str(tmp_path)})
    with pytest.raises(UserError) as caught:
        await helm.releases()
    assert caught.value.what == "there is no program `helm`"


def test_a_setting_that_names_no_program() -> None:
    with pytest.raises(UserError) as caught:
        find_helm({"FAIRLEAD_HELM": "/nowhere/helm", "PATH": ""})
    assert caught.value.what == "FAIRLEAD_HELM is `/nowhere/helm`, and that is no program"


def _connection(kubeconfig: Path) -> Connection:
    found = find_connection(str(kubeconfig))
    assert found is not None
    return found


def _command_lines() -> list[str]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return [line for line in found if "helm" in line]


def _write_plugin(folder: Path) -> None:
    folder.mkdir()
    (folder / "plugin.yaml").write_text(
        "name: trap\nversion: 1.0.0\nusage: x\ndescription: x\ncommand: $HELM_PLUGIN_DIR/run\n"
        "downloaders: [{command: run, protocols: [trap]}]\n"
    )
    (folder / "run").write_text(f"#!/bin/sh\ntouch {folder.parent / 'sprung'}\n")
    (folder / "run").chmod(0o755)
