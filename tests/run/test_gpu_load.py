"""The load generator end to end: the simulated cards of a laptop and of an exporter follow it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.arena import environment
from tests.run.laptop import PORTS, Laptop, get, post
from tests.run.server_process import page_of, running
from tests.waiting import HANG_SECONDS, wait_until

SECONDS = 60.0
POD = Path(__file__).parents[2] / "examples" / "dcgmproftester.yaml"
SCENARIO = """
title = "A node that reports its tensor cores"
description = "One node with one card, and nothing to do."
history = "1m"

[[node_pools]]
name = "gpu"
cpu = 48
memory = "368Gi"
gpu_model = "NVIDIA H200"
gpus = 1
"""


def scenario(folder: Path) -> str:
    (folder / "hopper.toml").write_text(SCENARIO)
    return str(folder / "hopper.toml")


def values(page: str, *names: str) -> list[float | None]:
    """The values of the only card."""
    found = (re.search(rf"^{name}{{[^}}]*}} (\S+)$", page, re.MULTILINE) for name in names)
    return [float(each[1]) if each else None for each in found]


FIELDS = ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_GPU_UTIL")


@pytest.mark.long
def test_document_002s_pod_moves_the_laptops_page_for_its_two_minutes(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path, *PORTS, "--scenario", scenario(tmp_path), "--speed", "12")
    try:
        ready = laptop.wait_ready()
        pod = yaml.safe_load(POD.read_text())
        assert pod["spec"]["containers"][0]["args"] == ["--no-dcgm-validation", "-t 1004", "-d 120"]
        post(ready, "/api/v1/namespaces/default/pods", pod)
        page = lambda: get(ready["gpu_exporter"])  # noqa: E731
        wait_until(page, lambda: values(page(), *FIELDS) == [0.87, 98], SECONDS, 0.1)
        assert 'pod="dcgmproftester"' in page()
        wait_until(page, lambda: values(page(), *FIELDS) == [0, 0], SECONDS, 0.1)
    finally:
        laptop.end()
        laptop.close()


@pytest.mark.long
def test_a_generator_without_a_card_moves_an_exporters_page_until_it_is_killed(
    tmp_path: Path,
) -> None:
    with running(
        tmp_path, "gpu-exporter", "--backend", "sim", "--scenario", scenario(tmp_path), "-c", "100"
    ) as (_, url):
        wait_until(
            "a card has answered", lambda: values(page_of(url), *FIELDS) == [0, 0], SECONDS, 0.05
        )
        argv = [
            sys.executable,
            "-m",
            "fairlead",
            "gpu-load",
            "--backend",
            "sim",
            "--no-dcgm-validation",
            "-t 1004",
            "-d 600",
            "-r",
            "10",
        ]
        generator = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=environment(tmp_path))
        try:
            wait_until(
                "the page moves",
                lambda: values(page_of(url), *FIELDS) == [0.87, 98],
                SECONDS,
                0.05,
            )
        finally:
            generator.kill()
            generator.wait()
        assert list((tmp_path / ".local/state/fairlead/gpu-load").iterdir()), (
            "it could not take its file away"
        )
        wait_until(
            "no process is at work", lambda: values(page_of(url), *FIELDS) == [0, 0], 5, 0.05
        )


def test_a_generator_that_is_asked_to_end_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ".local/state/fairlead/gpu-load"
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-load",
        "--backend",
        "sim",
        "--no-dcgm-validation",
        "-t 1004",
        "-d 600",
        "-r",
        "10",
    ]
    generator = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=environment(tmp_path))
    try:
        wait_until(
            "it has reported its load",
            lambda: bool(folder.exists() and list(folder.glob("*.load"))),
            SECONDS,
            0.05,
        )
        generator.terminate()
        assert generator.wait(timeout=HANG_SECONDS) == 143
        assert not list(folder.iterdir())
    finally:
        generator.kill()
        generator.wait()


def test_without_a_card_and_a_library_it_fails_in_one_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "fairlead", "gpu-load", "--no-dcgm-validation", "-t 1004", "-d 1"]
    ended = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(tmp_path),
        check=False,
    )
    assert ended.returncode == 2 and ended.stdout == "" and len(ended.stderr.splitlines()) == 1
    assert "--backend sim" in ended.stderr
