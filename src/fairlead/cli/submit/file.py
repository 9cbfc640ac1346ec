"""Reads the file of `submit -f`: objects of Kubernetes, or one job in arena's v2 schema.

See docs/spec/arena-cli.md#dry-run-and-files, docs/spec/arena-cli.md#job-files.

Objects are created as they are. A job file is flags in another spelling: it becomes words of a
command line that stand before the person's own, so flags override the file and every value is
checked by the same code.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import yaml

from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.input_files import read_input
from fairlead.cli.frame.object_names import check_namespace
from fairlead.cli.frame.parser import Parser
from fairlead.errors import UserError
from fairlead.wire.files.bounded import load_yaml_documents

Document = dict[str, Any]
Words = list[str]

_FRAMEWORKS: Final = {
    "mpijob": ("mpi", "mpijob"),
    "tfjob": ("tf", "tensorflow", "tfjob"),
    "pytorchjob": ("pytorch", "pytorchjob"),
    "etjob": ("et", "elastictraining", "etjob"),
    "deepspeedjob": ("deepspeed", "deepspeedjob"),
}
"""The words for a framework in a job file, by the types whose roles the schema has."""
_IN_BYTES: Final = ' in "<byte string>",'  # PyYAML's name for what has none
_HINT: Final = (
    "a job file has version, name, image, run, worker … ; objects of Kubernetes have apiVersion "
    "and kind"
)


def read_documents(name: str, machine: Machine) -> list[Document]:
    """The documents of a file, or of stdin for `-`."""
    text = read_input(machine, name, "job file")
    try:
        documents = [each for each in load_yaml_documents(text) if each is not None]
    except yaml.YAMLError as error:
        raise UserError(
            f"job file `{name}` is no YAML: "
            f"{' '.join(str(error).replace(_IN_BYTES, ' at').split())}"
        ) from error
    if not documents or not all(isinstance(each, dict) for each in documents):
        raise UserError(f"job file `{name}` holds no job", _HINT)
    return documents


def is_job_file(documents: Sequence[Document]) -> bool:
    """False for objects of Kubernetes. Raises UserError for a mixture, or for several jobs."""
    objects = [each for each in documents if "apiVersion" in each and "kind" in each]
    if len(objects) == len(documents):
        for each in objects:
            meta = each.get("metadata")
            if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
                raise UserError(f"a {each['kind']} of the job file has no metadata.name")
        return False
    if len(documents) > 1:
        raise UserError(
            (
                f"the job file holds {len(documents)} documents that are "
                "not all objects of Kubernetes"
            ),
            _HINT,
        )
    return True


def with_job_file(
    args: argparse.Namespace, documents: Sequence[Document], type_: str
) -> argparse.Namespace:
    """The arguments as if the file had been typed before them."""
    if type_ not in _FRAMEWORKS:
        raise UserError(
            f"a {type_} cannot be written as a job file",
            "give its flags, or a file of objects of Kubernetes",
        )
    (job,) = documents
    words = job_file_words(job, type_)
    own = [word for word in args.words if not word.startswith("--file=")]
    positionals = args.command or ([str(job["run"])] if job.get("run") else [])
    flags = own[: own.index("--")] if "--" in own else own
    parser: Parser = args.parser
    return parser.parse([*words, *flags, *(["--", *positionals] if positionals else [])])


def namespace_of(documents: Sequence[Document]) -> str:
    """The namespace that a job file names, or an empty text."""
    named = documents[0].get("namespace") or ""
    if named:
        check_namespace(_text(named, "namespace"))
    return str(named)


def job_file_words(job: Mapping[str, Any], type_: str) -> Words:
    """The flags that a job file means. Raises UserError for an unknown key, naming its place."""
    words: Words = []
    for key, value in job.items():
        reader = _KEYS.get(str(key))
        if reader is None:
            raise UserError(
                f"unknown key `{key}` in the job file", f"known are {', '.join(sorted(_KEYS))}"
            )
        if value is not None:
            words += reader(value, type_)
    return words


def _flag(name: str) -> Callable[[Any, str], Words]:
    return lambda value, _: [f"--{name}={_text(value, name)}"]


def _flags(name: str) -> Callable[[Any, str], Words]:
    return lambda value, _: [f"--{name}={_text(each, name)}" for each in _list(value, name)]


def _pairs(name: str) -> Callable[[Any, str], Words]:
    def words(value: Any, _: str) -> Words:
        if isinstance(value, dict):
            return [f"--{name}={key}={_text(each, name)}" for key, each in value.items()]
        pairs = [_block(each, name, ("name", "value")) for each in _list(value, name)]
        return [
            f"--{name}={each.get('name')}={_text(each.get('value', ''), name)}" for each in pairs
        ]

    return words


def _nothing(value: Any, _: str) -> Words:
    return []


def _version(value: Any, _: str) -> Words:
    if str(value) != "0.1.0":
        raise UserError(f"version `{value}` of the job file is unknown", "write `version: 0.1.0`")
    return []


def _framework(value: Any, type_: str) -> Words:
    block = _block(value, "framework", ("name", "options"))
    if block.get("name") and str(block["name"]).lower() not in _FRAMEWORKS[type_]:
        raise UserError(f"the job file is for `{block['name']}`, and the command submits a {type_}")
    options = block.get("options") or {}
    return [
        f"--{str(key).replace('_', '-')}={_text(each, 'framework.options')}"
        for key, each in dict(options).items()
    ]


def _role(role: str) -> Callable[[Any, str], Words]:
    def words(value: Any, type_: str) -> Words:
        block = _block(value, role, ("replicas", "resources", "envs"))
        resources = _block(
            block.get("resources") or {}, f"{role}.resources", ("cpu", "memory", "gpu", "gpus")
        )
        is_tf = type_ == "tfjob"
        if role in ("master", "launcher") and (
            is_tf or role != ("master" if type_ == "pytorchjob" else "launcher")
        ):
            raise UserError(f"a {type_} has no {role}")
        if role in ("chief", "ps", "evaluator") and not is_tf:
            raise UserError(f"a {type_} has no {role}")
        found = _pairs("env")(block["envs"], type_) if block.get("envs") else []
        return (
            found
            + _replicas(role, block.get("replicas"), type_)
            + _resources(role, resources, is_tf)
        )

    return words


def _replicas(role: str, replicas: Any, type_: str) -> Words:
    if replicas is None:
        return []
    count = _number(replicas, f"{role}.replicas")
    if role == "worker":
        # the file counts workers, the flag the master as well
        return [f"--workers={count + (type_ == 'pytorchjob')}"]
    if role == "ps":
        return [f"--ps={count}"]
    if count > 1 or (count == 0 and role in ("master", "launcher")):
        raise UserError(f"{role}.replicas is {count}: a job has one {role}")
    return [f"--{role}={'true' if count else 'false'}"] if role in ("chief", "evaluator") else []


def _resources(role: str, resources: Mapping[str, Any], is_tf: bool) -> Words:
    words = []
    for part in ("cpu", "memory"):
        if resources.get(part) is not None and (is_tf or role != "launcher"):
            words.append(f"--{role + '-' if is_tf else ''}{part}={_text(resources[part], role)}")
    gpus = resources.get("gpus", resources.get("gpu"))
    if gpus is not None and role in ("worker", "master", "ps"):
        words.append(
            f"--{'ps-' if role == 'ps' else ''}gpus={_number(gpus, f'{role}.resources.gpus')}"
        )
    return words


def _blocked(
    name: str, keys: Mapping[str, str], many: Sequence[str] = ()
) -> Callable[[Any, str], Words]:
    """A block whose keys are flags of other names; those in `many` hold lists or maps."""

    def words(value: Any, type_: str) -> Words:
        found: Words = []
        for key, each in _block(value, name, tuple(keys)).items():
            if each is not None:
                reader = (
                    _pairs(keys[key])
                    if isinstance(each, dict)
                    else _flags(keys[key])
                    if key in many
                    else _flag(keys[key])
                )
                found += reader(each, type_)
        return found

    return words


def _storages(value: Any, _: str) -> Words:
    words = []
    for each in _list(value, "storages"):
        block = _block(each, "storages", ("pvc", "host_path", "mount_path"))
        path = _text(block.get("mount_path", ""), "storages")
        if block.get("pvc"):
            words.append(f"--data={block['pvc']}:{path}")
        else:
            words.append(f"--data-dir={block.get('host_path', '')}:{path}")
    return words


def _logging(value: Any, type_: str) -> Words:
    block = _block(value, "logging", ("tensorboard",))
    board = _block(
        block.get("tensorboard") or {}, "logging.tensorboard", ("enabled", "image", "logdir")
    )
    if not board or board.get("enabled") is False:
        return []
    return [
        "--tensorboard=true",
        *_blocked(
            "tensorboard",
            {"image": "tensorboard-image", "logdir": "logdir", "enabled": "tensorboard"},
        )(board, type_),
    ]


_KEYS: Final[Mapping[str, Callable[[Any, str], Words]]] = {
    "version": _version,
    "name": _flag("name"),
    "namespace": _nothing,
    "labels": _pairs("label"),
    "annotations": _pairs("annotation"),
    "image": _flag("image"),
    "run": _nothing,
    "shell": _flag("shell"),
    "working_dir": _flag("working-dir"),
    "framework": _framework,
    "envs": _pairs("env"),
    **{role: _role(role) for role in ("worker", "master", "launcher", "chief", "ps", "evaluator")},
    "sync": _blocked("sync", {"mode": "sync-mode", "source": "sync-source", "image": "sync-image"}),
    "storages": _storages,
    "scheduling": _blocked(
        "scheduling",
        {
            "priority": "priority",
            "scheduler": "scheduler",
            "gang": "gang",
            "queue": "queue",
            "selector": "selector",
            "tolerations": "toleration",
        },
        many=("tolerations",),
    ),
    "lifecycle": _blocked(
        "lifecycle",
        {
            "clean_task_policy": "clean-task-policy",
            "retry": "retry",
            "running_timeout": "running-timeout",
            "starting_timeout": "starting-timeout",
            "ttl_after_finished": "ttl-after-finished",
        },
    ),
    "image_pull_policy": _flag("image-pull-policy"),
    "image_pull_secrets": _flags("image-pull-secret"),
    "service_account": _flag("service-account"),
    "restart": _flag("restart-policy"),
    "host_network": _flag("hostNetwork"),
    "host_ipc": _flag("hostIPC"),
    "host_pid": _flag("hostPID"),
    "logging": _logging,
}


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise UserError(f"`{where}` of the job file is no plain value")


def _number(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise UserError(f"`{where}` of the job file is `{value}`, and must be a number from 0")


def _list(value: Any, where: str) -> list[Any]:
    if isinstance(value, list):
        return value
    raise UserError(f"`{where}` of the job file is no list")


def _block(value: Any, where: str, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"`{where}` of the job file is no block", f"its keys are {', '.join(keys)}")
    unknown = [str(key) for key in value if key not in keys]
    if unknown:
        raise UserError(
            f"unknown key `{where}.{unknown[0]}` in the job file",
            f"its keys are {', '.join(keys)}",
        )
    return value
