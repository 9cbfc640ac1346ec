"""Which flags does `submit` take? The common ones and those of each kind (arena contract §3), as text: `submit_spec` reads the values.

What a newcomer gets wrong: arena kept the old spelling of many flags (`--workingDir`); such a twin writes into the flag that replaced it
and is told on stderr once per use, and it is in no help text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from fairlead.cli.flags import BooleanFlag


class Twin(argparse.Action):
    """The deprecated spelling of another flag."""

    def __init__(self, option_strings: Sequence[str], dest: str, replaced_by: argparse.Action) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self._replaced_by = replaced_by

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        old, new = self.option_strings[0].lstrip("-"), next(each for each in self._replaced_by.option_strings if each.startswith("--"))
        notes = getattr(namespace, "deprecations", ())
        namespace.deprecations = (*notes, f"Flag --{old} has been deprecated, please use {new} instead")
        self._replaced_by(parser, namespace, values, option)


def add_common_flags(parser: argparse.ArgumentParser) -> None:
    """What every kind takes. The parser itself goes along: a command line without a command is answered with its help."""
    parser.set_defaults(parser=parser)
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="what to run in each training container, joined by blanks, by --shell"
    )
    _text(parser, "--name", help="name of the job (required)")
    _text(parser, "--image", help="image of the training containers")
    _text(parser, "--image-pull-policy", default="Always", metavar="POLICY", help="Always, IfNotPresent or Never")
    _many(parser, "--image-pull-secret", metavar="SECRET", help="a secret to pull images with")
    _text(parser, "--gpus", default="0", metavar="N", help="whole GPUs of each worker")
    _text(parser, "--gpumemory", default="0", metavar="N", help="units of shared GPU memory (`aliyun.com/gpu-mem`) of each GPU pod")
    _text(parser, "--gpucore", default="0", metavar="PERCENT", help="percent of a GPU's cores of each GPU pod")
    _many(parser, "--device", metavar="RESOURCE=N", help="another chip, e.g. `amd.com/gpu=1`")
    _text(parser, "--workers", default="1", metavar="N", help="how many workers")
    _text(parser, "--retry", default="0", metavar="N", help="how often a failed job is tried again")
    _many(parser, "--env", "-e", metavar="NAME=VALUE", help="an environment variable of the training containers")
    _many(
        parser, "--env-from-secret", metavar="NAME=SECRET[:KEY]", help="an environment variable out of a secret (key: the variable's name)"
    )
    _many(parser, "--annotation", "-a", metavar="KEY=VALUE", help="an annotation of the job and its pods")
    _many(parser, "--label", "-l", metavar="KEY=VALUE", help="a label of the job and its pods")
    _many(parser, "--selector", metavar="KEY=VALUE", help="only nodes with this label")
    _many(parser, "--toleration", metavar="TAINT", help="KEY=VALUE:EFFECT,OPERATOR or KEY:EFFECT or KEY, or `all`")
    _text(parser, "--priority", "-p", metavar="CLASS", help="priority class of the pods")
    _text(parser, "--scheduler", metavar="NAME", help="scheduler of the pods")
    _text(parser, "--service-account", metavar="NAME", help="service account of the pods")
    _text(parser, "--restart-policy", metavar="POLICY", help="Never or OnFailure, for every role (each has its own by default)")
    _truth(parser, "--queue", help="wait for the quota's queue before pods are made")
    _truth(parser, "--gang", help="start all pods or none")
    _truth(parser, "--rdma", help="ask for an RDMA device")
    _truth(parser, "--hostNetwork", help="use the node's network")
    _truth(parser, "--hostIPC", help="use the node's IPC namespace")
    _truth(parser, "--hostPID", help="use the node's PID namespace")
    _text(parser, "--share-memory", default="2Gi", metavar="SIZE", help="size of /dev/shm")
    _text(parser, "--shell", default="sh", help="what runs the command")
    _text(parser, "--working-dir", twin="workingDir", default="/root", metavar="DIR", help="working directory of the command")
    _many(parser, "--data", "-d", metavar="CLAIM:PATH", help="mount a persistent volume claim")
    _many(parser, "--data-dir", twin="dataDir", metavar="HOST[:PATH]", help="mount a folder of the node")
    _many(parser, "--config-file", metavar="FILE[:PATH]", help="mount a file of this machine")
    _text(parser, "--sync-mode", twin="syncMode", metavar="MODE", help="copy code first: git or rsync")
    _text(parser, "--sync-source", twin="syncSource", metavar="SOURCE", help="the repository, or what rsync copies")
    _text(parser, "--sync-image", twin="syncImage", metavar="IMAGE", help="image of the copying container")
    _truth(parser, "--tensorboard", help="run TensorBoard beside the job")
    _text(parser, "--tensorboard-image", twin="tensorboardImage", metavar="IMAGE", help="image of TensorBoard")
    _text(parser, "--logdir", default="/training_logs", metavar="DIR", help="where the job writes TensorBoard's logs")
    _text(
        parser, "--clean-task-policy", twin="cleanTaskPolicy", metavar="POLICY", help="pods to delete after the end: None, Running or All"
    )
    _text(parser, "--running-timeout", metavar="TIME", help="end the job after so long, e.g. `1h30m`")
    _text(parser, "--ttl-after-finished", metavar="TIME", help="delete the job so long after its end")
    _text(parser, "--model-name", metavar="NAME", help="name of the model that is trained")
    _text(parser, "--model-source", metavar="URI", help="where the model comes from")
    _truth(parser, "--dry-run", help="print the objects as YAML and create nothing")
    _text(parser, "--file", "-f", metavar="FILE", help="create the objects of a YAML file (`-`: stdin); flags come after it")


def add_one_size_flags(parser: argparse.ArgumentParser) -> None:
    """Where every role has the same cpu and memory."""
    _text(parser, "--cpu", metavar="CPU", help="cpu of each pod")
    _text(parser, "--memory", metavar="SIZE", help="memory of each pod")


def add_mpi_flags(parser: argparse.ArgumentParser) -> None:
    add_one_size_flags(parser)
    _truth(parser, "--mounts-on-launcher", help="mount --data and --data-dir on the launcher, too")
    _truth(parser, "--gputopology", help="let the scheduler choose GPUs by their links")


def add_pytorch_flags(parser: argparse.ArgumentParser) -> None:
    add_one_size_flags(parser)
    _text(parser, "--nproc-per-node", metavar="N", help="processes of each pod: auto, cpu, gpu or a number")


def add_tf_flags(parser: argparse.ArgumentParser) -> None:
    for role, old in (("worker", "worker"), ("ps", "ps"), ("chief", "Chief"), ("evaluator", "evaluator")):
        for part, title in (("cpu", "Cpu"), ("memory", "Memory")):
            _text(parser, f"--{role}-{part}", twin=f"{old}{title}", metavar=part.upper(), help=f"{part} of each {role}")
            _text(parser, f"--{role}-{part}-limit", metavar=part.upper(), help=f"the most {part} of each {role} (else what it asks for)")
        _many(parser, f"--{role}-selector", metavar="KEY=VALUE", help=f"only nodes with this label, for the {role}")
    for role in ("worker", "ps"):
        _text(parser, f"--{role}-image", twin=f"{role}Image", metavar="IMAGE", help=f"image of the {role}, instead of --image")
        _text(parser, f"--{role}-affinity-policy", default="none", metavar="POLICY", help="none, spread or binpack")
        _text(parser, f"--{role}-affinity-constraint", default="preferred", metavar="HOW", help="preferred or required")
    for role in ("worker", "ps", "chief"):
        _text(parser, f"--{role}-port", twin=f"{role}Port", default="0", metavar="PORT", help=f"port of the {role} (2222)")
    _text(parser, "--ps", default="0", metavar="N", help="how many parameter servers")
    _text(parser, "--ps-gpus", default="0", metavar="N", help="whole GPUs of each parameter server")
    _truth(parser, "--chief", help="have a chief")
    _truth(parser, "--evaluator", help="have an evaluator")
    _text(parser, "--success-policy", metavar="POLICY", help="ChiefWorker or AllWorkers")
    _text(parser, "--role-sequence", metavar="ROLES", help="order in which roles start, e.g. `w,p,c,e`")
    _text(parser, "--starting-timeout", metavar="TIME", help="give up when it has not started after so long")


def _text(parser: argparse.ArgumentParser, *spellings: str, help: str, default: str = "", metavar: str = "", twin: str = "") -> None:
    action = parser.add_argument(*spellings, default=default, metavar=metavar or "TEXT", help=help)
    _add_twin(parser, action, twin)


def _many(parser: argparse.ArgumentParser, *spellings: str, help: str, metavar: str, twin: str = "") -> None:
    """Repeatable; the values collect."""
    action = parser.add_argument(*spellings, action="append", default=[], metavar=metavar, help=help)
    _add_twin(parser, action, twin)


def _truth(parser: argparse.ArgumentParser, *spellings: str, help: str) -> None:
    parser.add_argument(*spellings, action=BooleanFlag, help=help)


def _add_twin(parser: argparse.ArgumentParser, action: argparse.Action, twin: str) -> None:
    if twin:
        parser.add_argument(f"--{twin}", action=Twin, dest=action.dest, replaced_by=action)
