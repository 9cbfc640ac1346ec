"""The flags that all types of `serve` take, a row for each, and the serving spec that they become.

Every value is checked here, before anything is asked of a cluster.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Final

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.flags import Flag, add_flags, many, read_flags, text, truth
from fairlead.cli.frame.values import invalid
from fairlead.cli.submit.spec import (
    DRY_RUN,
    LABELLED,
    ONE_SIZE,
    PLACED,
    PULL_POLICIES,
    pull_secrets,
    read_config_file,
    sizes,
)
from fairlead.kinds.serving.spec import Mount, ServingPorts, ServingSpec

_PART: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_MAX: Final = 63


def add_common_flags(parser: argparse.ArgumentParser, *, image: str = "") -> None:
    """What every type takes. `image`: the one it runs by default."""
    parser.add_argument(
        "words_of_command",
        nargs="*",
        metavar="COMMAND",
        help="command to run with --shell, joined by blanks",
    )
    add_flags(parser, _common(image))


def common_spec(
    args: argparse.Namespace, type_: str, namespace: str, machine: Machine, now: float
) -> ServingSpec:
    """Raises UserError for the first value that cannot be used."""
    name = values.job_name(args.name, may_begin_with_digit=True)
    if args.words_of_command and args.command:
        raise invalid(
            "--command is invalid: a command stands after the flags as well", "give one of them"
        )
    return ServingSpec(
        type=type_,
        name=name,
        version=_version(args.version, now),
        namespace=namespace,
        pull_secrets=pull_secrets(args, machine.config()),
        limits=sizes(cpu=("cpu", args.cpu), memory=("memory", args.memory)),
        claims=_mounts("data", values.claims("data", args.data), args.data_subpath_expr),
        empty_dirs=_mounts(
            "temp-dir",
            tuple(_named_paths("temp-dir", args.temp_dir).items()),
            args.temp_dir_subpath_expr,
        ),
        config_files=tuple(read_config_file(each, machine) for each in args.config_file),
        command=args.command or " ".join(args.words_of_command),
        **read_flags(args, _common("")),
    )


def _labelled(label: str) -> Callable[[str, str], str]:
    return lambda flag, given: values.labels(flag, [f"{label}={given}"])[label]


def _common(image: str) -> tuple[Flag, ...]:
    described = f"image of the model server{f' (default {image})' if image else ''}"
    policies = values.one_of(*PULL_POLICIES)
    units = "units of shared GPU memory (`aliyun.com/gpu-mem`) of each pod"
    part = "mount only this folder of the claim, e.g. `$(ARENA_POD_NAME)`"
    empty_part = "mount only this folder of the empty folder"
    return (
        text("--name", twin="servingName", help="name of the serving job (required)"),
        text(
            "--version",
            twin="servingVersion",
            help="version of the serving job (default: the time, such as 202601051030)",
        ),
        text("--image", "image", default=image, help=described),
        text(
            "--image-pull-policy",
            "pull_policy",
            policies,
            twin="imagePullPolicy",
            default="IfNotPresent",
            metavar="POLICY",
            help="Always, IfNotPresent or Never",
        ),
        many("--image-pull-secret", metavar="SECRET", help="a secret to pull images with"),
        text("--command", metavar="COMMAND", help="command to run instead of the server's own"),
        text("--shell", "shell", default="sh", help="shell that runs the command"),
        text(
            "--replicas", "replicas", values.count, default="1", metavar="N", help="how many pods"
        ),
        text(
            "--gpus",
            "gpus",
            values.count,
            default="0",
            metavar="N",
            help="whole GPUs of each pod",
        ),
        text("--gpumemory", "gpu_memory", values.count, default="0", metavar="N", help=units),
        text(
            "--gpucore",
            "gpu_core",
            values.count,
            default="0",
            metavar="PERCENT",
            help="percent of a GPU's cores of each pod",
        ),
        many(
            "--device",
            "devices",
            values.devices,
            metavar="RESOURCE=N",
            help="another chip, e.g. `amd.com/gpu=1`",
        ),
        *ONE_SIZE,
        text(
            "--share-memory",
            "shared_memory",
            values.quantity,
            metavar="SIZE",
            help="size of /dev/shm",
        ),
        many("--data -d", metavar="CLAIM:PATH", help="mount a persistent volume claim"),
        many("--data-subpath-expr", metavar="CLAIM:EXPR", help=part),
        many(
            "--data-dir",
            "host_dirs",
            values.host_dirs,
            metavar="HOST[:PATH]",
            help="mount a folder of the node",
        ),
        many(
            "--temp-dir", metavar="NAME:PATH", help="mount an empty folder that ends with its pod"
        ),
        many("--temp-dir-subpath-expr", metavar="NAME:EXPR", help=empty_part),
        many("--config-file", metavar="FILE[:PATH]", help="mount a file of this machine"),
        many("--env -e", "env", values.env, metavar="NAME=VALUE", help="an environment variable"),
        many(
            "--env-from-secret",
            "secret_env",
            values.secret_envs,
            metavar="NAME=SECRET[:KEY]",
            help="an environment variable from a secret",
        ),
        *LABELLED,
        *PLACED,
        truth(
            "--enable-istio",
            "has_istio",
            twin="enableIstio",
            help="let Istio inject its proxy into the pods",
        ),
        truth(
            "--expose-service",
            "is_exposed",
            twin="exposeService",
            help="also serve on a port of every node",
        ),
        text(
            "--model-name",
            "model_name",
            _labelled("modelName"),
            twin="modelName",
            metavar="NAME",
            help="name of the model",
        ),
        text(
            "--model-version",
            "model_version",
            _labelled("modelVersion"),
            metavar="VERSION",
            help="version of the model",
        ),
        DRY_RUN,
    )


def check_service_name(name: str) -> None:
    """The name of a Service is one label of a host name that begins with a letter, so the job's
    name and version together must be.
    """
    if len(name) > _LABEL_MAX:
        raise invalid(
            f"--name and --version are invalid: the Service would be called {name}, "
            f"{len(name)} characters; {_LABEL_MAX} fit"
        )
    if not name[0].isalpha():
        raise invalid(
            f"--name is invalid: the Service would be called {name}, and the name of a Service "
            "begins with a letter"
        )


def ports(**given: tuple[str, str]) -> ServingPorts:
    """`grpc`, `http` and `metrics`, each a flag and its text."""
    return ServingPorts(**{port: values.port(flag, text) for port, (flag, text) in given.items()})


def check_ports(found: ServingPorts) -> ServingPorts:
    if not (found.grpc or found.http):
        raise invalid(
            "all  ports are 0,invalid configuration",
            "`--port` or `--restful-port` sets the port of the model",
        )
    numbers = [each for each in (found.grpc, found.http, found.metrics) if each]
    if len(numbers) > len(set(numbers)):
        raise invalid(
            f"ports are invalid: {', '.join(map(str, numbers))}",
            "one port cannot serve two protocols",
        )
    return found


def _version(text: str, now: float) -> str:
    version = text or values.version_of(now)
    if not _PART.fullmatch(version) or len(version) > _LABEL_MAX:
        raise invalid(
            f"--version is invalid: `{version}`",
            "it has lower case letters, digits and `-`, at most 63",
        )
    return version


def _named_paths(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """`NAME:PATH`; the name is a volume's."""
    found: dict[str, str] = {}
    for given in texts:
        name, colon, path = given.partition(":")
        if (
            not colon
            or not _PART.fullmatch(name)
            or len(name) > _LABEL_MAX
            or not path.startswith("/")
            or ":" in path
        ):
            raise invalid(f"--{flag} is invalid: `{given}`", "write it as NAME:/PATH")
        if name in found:
            raise invalid(f"--{flag} is invalid: {name} is given twice")
        found[name] = path
    return found


def _mounts(flag: str, paths: Sequence[tuple[str, str]], texts: Sequence[str]) -> tuple[Mount, ...]:
    """Each mount with the folder of `--FLAG-subpath-expr NAME:EXPR`."""
    parts: dict[str, str] = {}
    for given in texts:
        name, colon, expression = given.partition(":")
        if (
            not colon
            or not expression
            or expression.startswith("/")
            or ".." in expression.split("/")
        ):
            raise invalid(
                f"--{flag}-subpath-expr is invalid: `{given}`",
                "write it as NAME:FOLDER, e.g. `models:$(ARENA_POD_NAME)`",
            )
        places = [path for each, path in paths if each == name]
        if not places:
            raise invalid(f"--{flag}-subpath-expr is invalid: no --{flag} mounts `{name}`")
        if len(places) > 1:
            raise invalid(
                (
                    f"--{flag}-subpath-expr is invalid: `{name}` is mounted at "
                    f"{' and at '.join(places)}"
                ),
                "mount it once",
            )
        parts[name] = expression
    return tuple(Mount(name, path, parts.get(name, "")) for name, path in paths)


def share(flag: str, text: str) -> str:
    """A number of pods or a percentage; empty stays empty."""
    if text and not re.fullmatch(r"[0-9]{1,9}%?", text):
        raise invalid(f"--{flag} is invalid: `{text}`", "write it as `1` or `25%`")
    return text


def container_path(flag: str, text: str, *, may_be_remote: bool = False) -> str:
    """Where a container finds something: an absolute path, where
    possible a URI; empty stays empty.
    """
    is_remote = may_be_remote and re.match(r"[a-z0-9]+://", text)
    if text and not text.startswith("/") and not is_remote:
        raise invalid(
            f"--{flag} is invalid: `{text}` is not absolute",
            "it is a path in the container; --data CLAIM:/PATH mounts a claim there",
        )
    return text
