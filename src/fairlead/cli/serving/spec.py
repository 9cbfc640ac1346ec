"""Makes a serving spec of the flags of `serve`.

Every value is checked here, before anything is asked of a cluster.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.values import invalid
from fairlead.cli.submit.spec import PULL_POLICIES, pull_secrets, read_config_file, sizes
from fairlead.kinds.serving.spec import Mount, ServingPorts, ServingSpec

_PART: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_MAX: Final = 63


def common_spec(args: argparse.Namespace, type_: str, namespace: str, machine: Machine, now: float) -> ServingSpec:
    """`config` is arena's config file. Raises UserError for the first value that cannot be used."""
    name = values.job_name(args.name)
    if args.words_of_command and args.command:
        raise invalid("--command is invalid: a command stands after the flags as well", "give one of them")
    return ServingSpec(
        type=type_,
        name=name,
        version=_version(args.version, now),
        namespace=namespace,
        image=args.image,
        pull_policy=values.word("image-pull-policy", args.image_pull_policy, PULL_POLICIES),
        pull_secrets=pull_secrets(args, machine.config()),
        replicas=values.count("replicas", args.replicas),
        gpus=values.count("gpus", args.gpus),
        gpu_memory=values.count("gpumemory", args.gpumemory),
        gpu_core=values.count("gpucore", args.gpucore),
        devices=values.devices("device", args.device),
        limits=sizes(cpu=("cpu", args.cpu), memory=("memory", args.memory)),
        shared_memory=values.quantity("share-memory", args.share_memory),
        env=values.env("env", args.env),
        secret_env=values.secret_envs("env-from-secret", args.env_from_secret),
        labels=values.labels("label", args.label),
        annotations=values.keyed("annotation", args.annotation),
        selector=values.labels("selector", args.selector),
        tolerations=values.tolerations("toleration", args.toleration),
        claims=_mounts("data", values.claims("data", args.data), args.data_subpath_expr),
        empty_dirs=_mounts("temp-dir", _named_paths("temp-dir", args.temp_dir), args.temp_dir_subpath_expr),
        host_dirs=values.host_dirs("data-dir", args.data_dir),
        config_files=tuple(read_config_file(each, machine) for each in args.config_file),
        shell=args.shell,
        command=args.command or " ".join(args.words_of_command),
        has_istio=args.enable_istio,
        is_exposed=args.expose_service,
        model_name=values.labels("model-name", [f"modelName={args.model_name}"])["modelName"],
        model_version=values.labels("model-version", [f"modelVersion={args.model_version}"])["modelVersion"],
    )


def check_service_name(name: str) -> None:
    """The name of a Service is one label of a host name that begins with a letter, so the job's name and
    version together must be.
    """
    if len(name) > _LABEL_MAX:
        raise invalid(f"--name and --version are invalid: the Service would be called {name}, {len(name)} characters; {_LABEL_MAX} fit")
    if not name[0].isalpha():
        raise invalid(f"--name is invalid: the Service would be called {name}, and the name of a Service begins with a letter")


def ports(**told: tuple[str, str]) -> ServingPorts:
    """`grpc`, `http` and `metrics`, each a flag and its text."""
    return ServingPorts(**{port: values.port(flag, text) for port, (flag, text) in told.items()})


def check_ports(found: ServingPorts) -> ServingPorts:
    if not (found.grpc or found.http):
        raise invalid("all  ports are 0,invalid configuration", "`--port` or `--restful-port` says where the model is asked")
    numbers = [each for each in (found.grpc, found.http, found.metrics) if each]
    if len(numbers) > len(set(numbers)):
        raise invalid(f"ports are invalid: {', '.join(map(str, numbers))}", "one port cannot serve two protocols")
    return found


def _version(text: str, now: float) -> str:
    version = text or time.strftime("%Y%m%d%H%M", time.localtime(now))
    if not _PART.fullmatch(version) or len(version) > _LABEL_MAX:
        raise invalid(f"--version is invalid: `{version}`", "it has lower case letters, digits and `-`, at most 63")
    return version


def _named_paths(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """`NAME:PATH`; the name is a volume's."""
    found: dict[str, str] = {}
    for text in texts:
        name, colon, path = text.partition(":")
        if not colon or not _PART.fullmatch(name) or len(name) > _LABEL_MAX or not path.startswith("/") or ":" in path:
            raise invalid(f"--{flag} is invalid: `{text}`", "write it as NAME:/PATH")
        if name in found:
            raise invalid(f"--{flag} is invalid: {name} is given twice")
        found[name] = path
    return found


def _mounts(flag: str, paths: Mapping[str, str], texts: Sequence[str]) -> tuple[Mount, ...]:
    """Each with the part that `--FLAG-subpath-expr NAME:EXPR` says."""
    parts: dict[str, str] = {}
    for text in texts:
        name, colon, expression = text.partition(":")
        if not colon or not expression or expression.startswith("/") or ".." in expression.split("/"):
            raise invalid(f"--{flag}-subpath-expr is invalid: `{text}`", "write it as NAME:FOLDER, e.g. `models:$(ARENA_POD_NAME)`")
        if name not in paths:
            raise invalid(f"--{flag}-subpath-expr is invalid: no --{flag} mounts `{name}`")
        parts[name] = expression
    return tuple(Mount(name, path, parts.get(name, "")) for name, path in paths.items())


def share(flag: str, text: str) -> str:
    """A number of pods or a percentage; empty stays empty."""
    if text and not re.fullmatch(r"[0-9]{1,9}%?", text):
        raise invalid(f"--{flag} is invalid: `{text}`", "write it as `1` or `25%`")
    return text


def container_path(flag: str, text: str, *, may_be_remote: bool = False) -> str:
    """Where a container finds something: an absolute path, where possible a URI; empty stays empty."""
    is_remote = may_be_remote and re.match(r"[a-z0-9]+://", text)
    if text and not text.startswith("/") and not is_remote:
        raise invalid(
            f"--{flag} is invalid: `{text}` is not absolute", "it is a path in the container; --data CLAIM:/PATH mounts a claim there"
        )
    return text
