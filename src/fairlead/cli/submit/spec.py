"""The flags that kinds of jobs share (docs/spec/arena-cli.md#effects-of-the-flags), and the job
spec that they become.

Each flag is one row: its spelling, the field of `JobSpec`, the parser of its text, and its help.
Every value is checked here, before any request to a cluster.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.flags import Flag, add_flags, many, read_flags, text, truth
from fairlead.cli.frame.values import invalid
from fairlead.kinds.parts.job_spec import CodeSync, ConfigFile, JobSpec, RoleSpec, Tensorboard

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
LABELLED: Final = (
    many(
        "--annotation -a",
        "annotations",
        values.keyed,
        metavar="KEY=VALUE",
        help="an annotation of the job and its pods",
    ),
    many(
        "--label -l",
        "labels",
        values.labels,
        metavar="KEY=VALUE",
        help="a label of the job and its pods",
    ),
)
PLACED: Final = (
    many(
        "--selector",
        "selector",
        values.labels,
        metavar="KEY=VALUE",
        help="only nodes with this label",
    ),
    many(
        "--toleration",
        "tolerations",
        values.tolerations,
        metavar="TAINT",
        help="KEY=VALUE:EFFECT,OPERATOR or KEY:EFFECT or KEY, or `all`",
    ),
)
DRY_RUN: Final = truth("--dry-run", help="print the objects as YAML and create nothing")
WAY: Final = (
    DRY_RUN,
    text(
        "--file -f",
        metavar="FILE",
        help="create the objects of a YAML file (`-`: stdin); flags come after it",
    ),
)
"""How the objects come into being, whatever they are."""
TIMES: Final = (
    text(
        "--running-timeout",
        "running_seconds",
        values.seconds,
        metavar="TIME",
        help="end the job after this time, e.g. `1h30m`",
    ),
    text(
        "--ttl-after-finished",
        "ttl_seconds",
        values.seconds,
        metavar="TIME",
        help="delete the job this time after its end",
    ),
)
"""Where the operator ends jobs, and removes those that have ended."""
ONE_SIZE: Final = (
    text("--cpu", metavar="CPU", help="cpu of each pod"),
    text("--memory", metavar="SIZE", help="memory of each pod"),
)
"""Where every role has the same cpu and memory."""
SHARED: Final = (
    text("--name", help="name of the job (required)"),
    text("--image", "image", help="image of the training containers"),
    text(
        "--image-pull-policy",
        "pull_policy",
        values.one_of(*PULL_POLICIES),
        default="Always",
        metavar="POLICY",
        help="Always, IfNotPresent or Never",
    ),
    many("--image-pull-secret", metavar="SECRET", help="a secret to pull images with"),
    text(
        "--gpumemory",
        "gpu_memory",
        values.count,
        default="0",
        metavar="N",
        help="units of shared GPU memory (`aliyun.com/gpu-mem`) of each GPU pod",
    ),
    text(
        "--gpucore",
        "gpu_core",
        values.count,
        default="0",
        metavar="PERCENT",
        help="percent of a GPU's cores of each GPU pod",
    ),
    many(
        "--device",
        "devices",
        values.devices,
        metavar="RESOURCE=N",
        help="another chip, e.g. `amd.com/gpu=1`",
    ),
    text(
        "--retry",
        "retry",
        values.count,
        default="0",
        metavar="N",
        help="number of retries of a failed job",
    ),
    many(
        "--env -e",
        "env",
        values.env,
        metavar="NAME=VALUE",
        help="an environment variable of the training containers",
    ),
    many(
        "--env-from-secret",
        "secret_env",
        values.secret_envs,
        metavar="NAME=SECRET[:KEY]",
        help="an environment variable from a secret (key: the variable's name)",
    ),
    *LABELLED,
    *PLACED,
    text(
        "--priority -p",
        "priority",
        values.object_name,
        metavar="CLASS",
        help="priority class of the pods",
    ),
    text(
        "--scheduler",
        "scheduler",
        values.object_name,
        metavar="NAME",
        help="scheduler of the pods",
    ),
    text(
        "--service-account",
        "service_account",
        values.object_name,
        metavar="NAME",
        help="service account of the pods",
    ),
    text(
        "--restart-policy",
        "restart",
        values.one_of("", "Never", "OnFailure"),
        metavar="POLICY",
        help="Never or OnFailure, for every role (each has its own by default)",
    ),
    truth("--queue", "is_queued", help="wait for the quota's queue before pods are created"),
    truth("--gang", "is_gang", help="start all pods or none"),
    truth("--rdma", "has_rdma", help="request an RDMA device"),
    truth("--hostNetwork", "host_network", help="use the node's network"),
    truth("--hostIPC", "host_ipc", help="use the node's IPC namespace"),
    truth("--hostPID", "host_pid", help="use the node's PID namespace"),
    text(
        "--share-memory",
        "shared_memory",
        values.quantity,
        default="2Gi",
        metavar="SIZE",
        help="size of /dev/shm",
    ),
    text("--shell", "shell", default="sh", help="shell that runs the command"),
    text(
        "--working-dir",
        "working_dir",
        twin="workingDir",
        default="/root",
        metavar="DIR",
        help="working directory of the command",
    ),
    many(
        "--data -d",
        "claims",
        values.claims,
        metavar="CLAIM:PATH",
        help="mount a persistent volume claim",
    ),
    many(
        "--data-dir",
        "host_dirs",
        values.host_dirs,
        twin="dataDir",
        metavar="HOST[:PATH]",
        help="mount a folder of the node",
    ),
    many("--config-file", metavar="FILE[:PATH]", help="mount a file of this machine"),
    text("--sync-mode", twin="syncMode", metavar="MODE", help="copy code first: git or rsync"),
    text(
        "--sync-source",
        twin="syncSource",
        metavar="SOURCE",
        help="the repository, or the source of rsync",
    ),
    text("--sync-image", twin="syncImage", metavar="IMAGE", help="image of the copying container"),
    truth("--tensorboard", help="run TensorBoard with the job"),
    text(
        "--tensorboard-image",
        twin="tensorboardImage",
        metavar="IMAGE",
        help="image of TensorBoard",
    ),
    text("--logdir", default="/training_logs", metavar="DIR", help="path of TensorBoard's logs"),
    text("--model-name", metavar="NAME", help="name of the model that is trained"),
    text("--model-source", "model_source", metavar="URI", help="source of the model"),
    *WAY,
)
"""What kinds take that count their pods by flags of their own."""
COMMON: Final = (
    *SHARED,
    text("--gpus", default="0", metavar="N", help="whole GPUs of each worker"),
    text("--workers", default="1", metavar="N", help="how many workers"),
    text(
        "--clean-task-policy",
        "clean_policy",
        values.clean_policy,
        twin="cleanTaskPolicy",
        metavar="POLICY",
        help="pods to delete after the end: None, Running or All",
    ),
)
"""What every kind of workers takes."""
_COMMAND: Final = "what to run in each training container, joined by blanks, by --shell"
_SYNC_IMAGES: Final = {
    "git": "registry.k8s.io/git-sync/git-sync:v3.6.9",
    "rsync": "instrumentisto/rsync-ssh:latest",
}
_TENSORBOARD_IMAGE: Final = "tensorflow/tensorflow:2.16.1"
_FILE_BYTES_MAX: Final = 1024 * 1024  # what an API server takes of a ConfigMap


def add_job_flags(
    parser: argparse.ArgumentParser,
    table: Iterable[Flag],
    command: str = _COMMAND,
    metavar: str = "COMMAND",
) -> None:
    parser.add_argument("command", nargs="*", metavar=metavar, help=command)
    add_flags(parser, table)


def common_spec(
    args: argparse.Namespace, namespace: str, machine: Machine, table: Iterable[Flag]
) -> JobSpec:
    """The spec of a table that begins with `SHARED`, without its roles.

    Raises UserError for the first value that cannot be used.
    """
    return JobSpec(
        name=values.job_name(args.name),
        namespace=namespace,
        command=" ".join(args.command),
        config_files=tuple(read_config_file(each, machine) for each in args.config_file),
        pull_secrets=pull_secrets(args, machine.config()),
        sync=_sync(args, machine.config()),
        tensorboard=_tensorboard(args, machine.config()),
        model_name=_model_name(args),
        **read_flags(args, table),
    )


def one_size_spec(
    args: argparse.Namespace, namespace: str, machine: Machine, table: Iterable[Flag]
) -> JobSpec:
    """Where all workers have the same image, cpu and memory: a table of `COMMON` and `ONE_SIZE`."""
    check_image(args)
    spec = common_spec(args, namespace, machine, table)
    replicas = values.count("workers", args.workers, 1)  # without workers such a job cannot run
    gpus = values.count("gpus", args.gpus)
    worker = RoleSpec(
        replicas=replicas,
        gpus=gpus,
        resources=sizes(cpu=("cpu", args.cpu), memory=("memory", args.memory)),
    )
    return replace(spec, worker=worker)


def check_image(args: argparse.Namespace) -> None:
    if not args.image:
        raise invalid("--image must be set ", "`--image IMAGE` names the image to train with")


def sizes(**given: tuple[str, str]) -> dict[str, str]:
    return {
        resource: amount
        for resource, (flag, given) in given.items()
        if (amount := values.quantity(flag, given))
    }


def read_config_file(given: str, machine: Machine) -> ConfigFile:
    here, path = values.config_file(given)
    try:
        content = machine.read(here)
    except OSError as error:
        raise invalid(f"config file `{here}` cannot be read: {error.strerror or error}") from error
    if len(content) > _FILE_BYTES_MAX:
        raise invalid(
            f"config file `{here}` has {len(content)} bytes; at most {_FILE_BYTES_MAX} fit",
            "mount it by --data",
        )
    return ConfigFile(path, content)


def pull_secrets(args: argparse.Namespace, config: Mapping[str, str]) -> tuple[str, ...]:
    configured = [
        each.strip() for each in config.get("imagePullSecrets", "").split(",") if each.strip()
    ]
    return tuple(
        values.object_name("image-pull-secret", each)
        for each in args.image_pull_secret or configured
    )


def _sync(args: argparse.Namespace, config: Mapping[str, str]) -> CodeSync | None:
    if not args.sync_mode:
        return None
    mode = values.word("sync-mode", args.sync_mode, tuple(_SYNC_IMAGES))
    if not args.sync_source:
        raise invalid(
            "--sync-source must be set when --sync-mode is set",
            "it is a repository, or the source of rsync",
        )
    return CodeSync(
        mode,
        args.sync_source,
        args.sync_image or config.get(f"sync_{mode}_image") or _SYNC_IMAGES[mode],
    )


def _tensorboard(args: argparse.Namespace, config: Mapping[str, str]) -> Tensorboard | None:
    if not args.tensorboard:
        return None
    if not args.logdir.startswith("/"):
        raise invalid(f"--logdir is invalid: `{args.logdir}` is not absolute")
    return Tensorboard(
        args.tensorboard_image or config.get("tensorboard_image") or _TENSORBOARD_IMAGE, args.logdir
    )


def _model_name(args: argparse.Namespace) -> str:
    if args.model_name and not args.model_source:
        raise invalid(
            "model version source must be specified when registering a model version",
            "`--model-source URI` names it",
        )
    return values.labels("model-name", [f"modelName={args.model_name}"])["modelName"]
