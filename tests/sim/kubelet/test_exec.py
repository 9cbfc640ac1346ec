"""What programs do in the containers of the simulated cluster."""

from __future__ import annotations

import pytest
from tests.sim.running_pods import world_with_pods
from tests.sim.small_world import NAMESPACE, get_pod, live

from fairlead.wire.names import LABEL_ISOLATION
from fairlead_sim.kubelet.exec import PATH, Execution, NotStarted
from fairlead_sim.world.world import World

NONE = {"cgpu.disable.isolation": "true"}
MPS = {"ack.node.gpu.schedule": "mps"}
MEMORY = ("nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv,noheader")


@pytest.fixture(scope="module")
def world() -> World:
    return world_with_pods()


def done(world: World, pod: str, *command: str, container: str = "main") -> Execution:
    found = world.programs.execute(NAMESPACE, pod, container, command)
    assert isinstance(found, Execution), found
    return found


def output(world: World, pod: str, *command: str) -> str:
    found = done(world, pod, *command)
    assert found.exit_code == 0
    return found.output.decode()


def refusal(world: World, pod: str, *command: str) -> str:
    found = world.programs.execute(NAMESPACE, pod, "main", command)
    assert isinstance(found, NotStarted), found
    return found.message


# --- nvidia-smi -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "memory"),
    [
        ({}, "3193 MiB, 4301 MiB\n"),
        (MPS, "3193 MiB, 4301 MiB\n"),
        (NONE, "6390 MiB, 16384 MiB\n"),
        ({LABEL_ISOLATION: "cgroup"}, "6390 MiB, 16384 MiB\n"),
    ],
    ids=str,
)
def test_a_share_is_shown_by_the_providers_that_show_it(
    labels: dict[str, str], memory: str
) -> None:
    assert output(world_with_pods(**labels), "half", *MEMORY) == memory


def test_the_own_gpus_only_each_counted_from_0(world: World) -> None:
    lines = output(world, "whole", "nvidia-smi", "-L").splitlines()
    held = [card.uuid for card, _ in world.devices.held(get_pod(world, "whole")["metadata"]["uid"])]
    assert lines == [
        f"GPU {index}: Tesla V100-SXM2-16GB (UUID: {uuid})" for index, uuid in enumerate(held)
    ]
    assert len(held) == 2
    used = world.devices.sample()
    figures = {each.uuid: each.fields["DCGM_FI_DEV_FB_USED"] for each in used}
    assert output(world, "whole", *MEMORY) == "".join(
        f"{figures[uuid]} MiB, 16384 MiB\n" for uuid in held
    )


def test_a_mig_instance_is_listed_and_its_memory_refused(world: World) -> None:
    shown = output(world, "mig", "nvidia-smi", "-L").splitlines()
    assert shown[0].startswith("GPU 0: NVIDIA H200 (UUID: GPU-")
    assert shown[1].startswith("  MIG 3g.71gb      Device  0: (UUID: MIG-")
    assert len(shown) == 2
    refused = done(world, "mig", "nvidia-smi")
    assert (refused.exit_code, refused.output) == (
        1,
        b"the simulated nvidia-smi lists MIG instances, but not their memory: use -L\n",
    )


def test_a_container_without_a_gpu_has_no_nvidia_smi(world: World) -> None:
    assert (
        'exec: "nvidia-smi": executable file not found in $PATH: unknown (this container of a '
        "simulated cluster has only cat, date, echo, env, false, hostname, printenv, sleep, true)"
    ) in refusal(world, "plain", "nvidia-smi")


# --- other programs -------------------------------------------------------------------------------


def test_the_environment(world: World) -> None:
    node = get_pod(world, "plain")["spec"]["nodeName"]
    assert output(world, "plain", "env").splitlines() == [
        f"PATH={PATH}",
        "HOSTNAME=plain",
        "GREETING=hello you",
        "EMPTY=",
        f"MY_NODE={node}",
        "MY_NAME=plain",
        "HOME=/root",
    ]
    assert output(world, "plain", "printenv", "GREETING") == "hello you\n"
    missing = done(world, "plain", "printenv", "NOPE", "HOME")
    assert (missing.output, missing.exit_code) == (b"/root\n", 1)
    (card,) = {
        card.uuid for card, _ in world.devices.held(get_pod(world, "half")["metadata"]["uid"])
    }
    assert output(world, "half", "printenv", "NVIDIA_VISIBLE_DEVICES") == f"{card}\n"


SHARE = {
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "ALIYUN_COM_GPU_MEM_IDX": "0",
    "ALIYUN_COM_GPU_VISIBLE_DEVICES": "0",
    "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
    "ALIYUN_COM_GPU_MEM_POD": "4",
    "ALIYUN_COM_GPU_MEM_DEV": "15",
}
"""docs/spec/gpu-sharing.md#container-environment, for 4 units of a card of 15."""


@pytest.mark.parametrize(
    ("labels", "more"),
    [
        ({}, {}),
        (NONE, {"CGPU_DISABLE": "true"}),
        (
            MPS,
            {
                "CUDA_MPS_PIPE_DIRECTORY": "/run/fairlead/mps",
                "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=4301M",
            },
        ),
    ],
    ids=str,
)
def test_the_environment_of_a_share_is_that_of_the_node_agent(
    labels: dict[str, str], more: dict[str, str]
) -> None:
    world = world_with_pods(**labels)
    ((card, _),) = world.devices.held(get_pod(world, "half")["metadata"]["uid"])
    shown = dict(line.split("=", 1) for line in output(world, "half", "env").splitlines())
    own = {"PATH": PATH, "HOSTNAME": "half", "HOME": "/root", "NVIDIA_VISIBLE_DEVICES": card.uuid}
    assert shown == {**own, **SHARE, **more}
    assert "ALIYUN" not in output(world, "whole", "env")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (("hostname",), Execution(b"plain\n")),
        (("/bin/hostname",), Execution(b"plain\n")),
        (("hostname", "x"), 1),
        (("echo", "a", "b"), Execution(b"a b\n")),
        (("echo", "-n", "x"), Execution(b"x")),
        (("echo",), Execution(b"\n")),
        (("true",), Execution()),
        (("false",), Execution(exit_code=1)),
        (("cat",), Execution(copies_input=True)),
        (("cat", "-"), Execution(copies_input=True)),
        (("cat", "x"), Execution(errors=b"cat: x: No such file or directory\n", exit_code=1)),
        (("env", "-i"), 125),
        (("sleep",), 1),
        (("sleep", "$(X)"), 1),
        (("sh", "-c", "echo -n hi"), 0),
        (("bash", "-lc", "hostname"), Execution(b"plain\n")),
        (("sh", "-c", "exit 3"), 3),
        (("sh", "-c", ""), 0),
    ],
    ids=str,
)
def test_a_program(world: World, command: tuple[str, ...], found: Execution | int) -> None:
    ended = done(world, "plain", *command)
    assert found in (ended, ended.exit_code)


@pytest.mark.parametrize(
    "command",
    [
        ("sh",),
        ("bash", "-i"),
        ("/bin/sh", "-c", "ls | wc"),
        ("sh", "-c", "while true; do date; sleep 1; done"),
        ("sh", "-c", "echo $HOME"),
        ("sh", "-c", "sh -c true"),
    ],
    ids=str,
)
def test_a_shell_is_refused_with_a_sentence(world: World, command: tuple[str, ...]) -> None:
    assert refusal(world, "half", *command) == (
        "pod half runs in a simulated cluster, where containers have no shell: execute one "
        "program, for example `kubectl exec half -- nvidia-smi`"
    )


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("python",), 'exec: "python": executable file not found in $PATH: unknown (this'),
        (('a"b',), r'exec: "a\"b": executable file not found in $PATH: unknown'),
        (("/opt/run",), 'exec: "/opt/run": stat /opt/run: no such file or directory: unknown'),
        (("",), 'exec: "": executable file not found in $PATH: unknown'),
        ((), "OCI runtime exec failed: exec failed: args must not be empty"),
    ],
    ids=str,
)
def test_no_such_program(world: World, command: tuple[str, ...], why: str) -> None:
    shown = refusal(world, "plain", *command)
    assert shown.startswith(
        "error executing command in container: failed to exec in container: failed to start exec "
    )
    assert why in shown


def test_which_containers_run(world: World) -> None:
    def number(pod: str, container: str = "main") -> int | None:
        return world.programs.run_number(NAMESPACE, pod, container)

    assert [number("plain"), number("pair", "beside"), number("starts", "setup")] == [0, 0, 0]
    assert [number("starts"), number("missing"), number("absent"), number("plain", "x")] == [
        None
    ] * 4


def test_a_container_that_starts_again_is_another_run() -> None:
    world = world_with_pods()
    seen = set()
    for _ in range(60):
        live(world, 1)
        seen.add(world.programs.run_number(NAMESPACE, "crashes", "main"))
    assert None in seen and len(seen) >= 2
