"""The flags of commands that create as forms, for a page: the same parsers, readers and checks.

A body is words of a command line in another spelling, as a job file is. So there is one code for
what a flag means, and the printed command makes the same objects.
"""

from __future__ import annotations

import argparse
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.object_names import check_namespace
from fairlead.cli.frame.parser import Parser, make_parser
from fairlead.cli.frame.values import INVALID, job_name, version_of
from fairlead.cli.submit.cloned import Flags, cloned
from fairlead.cli.submit.submit import ServeVerb, SubmitVerb, check_text, written_objects
from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.jobs import (
    Family,
    JobClone,
    JobFlag,
    JobForm,
    JobSubmission,
)
from fairlead.errors import UserError
from fairlead.kinds.parts.elastic_training import SshKeys
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind import CreatedKind
from fairlead.kinds.serving.kinds import CUSTOM, KSERVE, TENSORFLOW, TRITON
from fairlead.kinds.serving.kinds import TYPES as SERVING
from fairlead.kinds.serving.spec import ServingSpec
from fairlead.kinds.submission import AnySubmission, Served
from fairlead.model.actions import Manifest
from fairlead.wire.names import ANNOTATION_USERNAME


class _Command(NamedTuple):
    """`module`: of its verb, below `fairlead.cli`."""

    module: str
    family: Family


_COMMANDS: Final[Mapping[str, _Command]] = {
    **{
        type_: _Command(f"submit.{type_}", "train")
        for type_ in (
            *("pytorchjob", "tfjob", "mpijob", "rayjob", "deepspeedjob", "etjob", "volcanojob"),
            "sparkjob",
        )
    },
    CUSTOM: _Command("serving.custom", "serve"),
    TENSORFLOW: _Command("serving.tensorflow", "serve"),
    TRITON: _Command("serving.triton", "serve"),
    KSERVE: _Command("serving.kserve", "serve"),
    "cron-tfjob": _Command("cron.tfjob", "cron"),
}
TYPES: Final = tuple(_COMMANDS)
"""In the order in which a page offers them."""
LEFT_OUT: Final = frozenset(("name", "command", "file", "dry-run", "config-file"))
"""Flags that are no field of a form: name and command have their own, and the others read a user's
machine.
"""
_PROGRAM: Final = "arena"
_VERSION: Final = "version"
_FLAG: Final = re.compile(r"--([A-Za-z][-A-Za-z0-9]*)")
_UNSET: Final = re.compile(r'"([-a-z]+)" not set')
_STAND_INS: Final = {
    "image": "image",
    "worker-replicas": "1",
    "sync-source": "source",
    "model-source": "source",
    "schedule": "@daily",
    "port": "65535",
    "model-format": "format",
    "model-name": "model",
    "model-path": "/model",
    "model-repository": "/models",
}
"""Values with which the rest of a body is read while these flags are missing."""
_RULE: Final = "value"
_MISSING: Final = "required"
_UNKNOWN: Final = "unknown-field"
_TYPE: Final = "type"


_SpecReader = Callable[[argparse.Namespace, str, Machine, float], JobSpec | ServingSpec]


class _Verb(NamedTuple):
    """`words`: those after `arena`. `takes_arguments`: whether the words after the flags are the
    arguments of a program, and not one command.
    """

    words: tuple[str, ...]
    parser: Parser
    flags: Mapping[str, JobFlag]
    submission: AnySubmission
    read_spec: _SpecReader
    needs_command: bool
    takes_arguments: bool


class SubmitForms:
    """See `console.http.writing.job_forms.JobForms`. `ssh_keys` makes a new pair; `now`: epoch
    seconds of this machine.
    """

    def __init__(
        self, ssh_keys: Callable[[], SshKeys], now: Callable[[], float] = time.time
    ) -> None:
        self._ssh_keys = ssh_keys
        self._now = now

    def forms(self) -> list[JobForm]:
        return [_form(type_) for type_ in TYPES]

    def kind_of(self, type_: str) -> CreatedKind | None:
        return _verb(type_).submission.kind if type_ in _COMMANDS else None

    def read(self, asked: JobSubmission, *, is_trial: bool) -> WrittenJob | list[FieldFault]:
        if asked.type not in _COMMANDS:
            known = ", ".join(TYPES)
            return [FieldFault("type", _RULE, f"there is no type `{asked.type[:60]}`: use {known}")]
        keys = (lambda: _NO_KEYS) if is_trial else self._ssh_keys
        return _Reading(asked, cast(Machine, _NoMachine(keys)), self._now()).result()

    def objects(self, job: WrittenJob, served: Served) -> list[Manifest]:
        try:
            return written_objects(job.spec, job.submission, served)
        except UserError as error:
            raise UserError(error.what.removeprefix(INVALID), error.hint) from error

    def cloned(self, type_: str, job: Manifest) -> JobClone:
        found, meta = _verb(type_), job["metadata"]
        asked = JobSubmission(type_, meta["namespace"], meta["name"])
        version = str(job["apiVersion"]).rpartition("/")[2]
        user = (meta.get("annotations") or {}).get(ANNOTATION_USERNAME, "")

        def build(flags: Flags, command: str) -> Manifest | None:
            read = self.read(replace(asked, flags=flags, command=command), is_trial=True)
            if isinstance(read, list):
                return None
            kind = read.submission.kind
            made = version if version in kind.CREATED_VERSIONS else kind.CREATED_VERSIONS[0]
            objects = read.submission.objects(replace(read.spec, user=user), made)
            return next(each for each in objects if each["kind"] == kind.KIND)

        flags, command, lost = cloned(found.flags, job, build)
        name = next_name(meta["name"])
        return JobClone(replace(asked, name=name, command=command, flags=flags), lost)


def next_name(name: str) -> str:
    """
    >>> next_name("bert"), next_name("bert-2"), next_name("b" * 49)[-4:]
    ('bert-2', 'bert-3', 'bb-2')
    """
    stem, _, number = name.rpartition("-")
    end = f"-{int(number) + 1}" if stem and number.isdigit() and len(number) < 6 else "-2"
    return f"{(stem if end != '-2' or number == '1' else name)[: _NAME_MAX - len(end)]}{end}"


_NAME_MAX: Final = 47
"""The least that a kind of job allows."""
_NO_KEYS: Final = SshKeys("not made yet", "not made yet")


class _NoMachine:
    """A server has no files and no settings of the user who asks."""

    def __init__(self, ssh_keys: Callable[[], SshKeys]) -> None:
        self.ssh_keys = ssh_keys

    def config(self) -> Mapping[str, str]:
        return {}

    def read(self, name: str) -> bytes:
        raise OSError("a page reads no file")


class _Reading:
    """One body. Each fault is noted, and the rest is read without what is wrong."""

    def __init__(self, asked: JobSubmission, machine: Machine, now: float) -> None:
        self._asked = asked
        self._machine = machine
        self._now = now
        self._verb = _verb(asked.type)
        self._name = asked.name
        self._command = asked.command
        self._flags: dict[str, bool | str | list[str]] = {}
        self._mended: set[tuple[str, bool]] = set()
        self.faults: list[FieldFault] = []

    def result(self) -> WrittenJob | list[FieldFault]:
        self._check_forms()
        if _VERSION in self._verb.flags and not self._flags.get(_VERSION):
            # The command that is shown must not have another one when it runs.
            self._flags[_VERSION] = version_of(self._now)
        self._check_namespace()
        while True:
            try:
                job = self._written()
            except UserError as error:
                if not self._mends(error):
                    return self.faults
            else:
                return self.faults or job

    def _check_forms(self) -> None:
        for name, value in self._asked.flags.items():
            flag = self._verb.flags.get(name)
            path = f"flags.{name[:60]}"
            if flag is None:
                what = f"a {self._asked.type} takes no `{name[:60]}`"
                self.faults.append(FieldFault(path, _UNKNOWN, what))
            elif (wanted := _wanted_form(flag, value)) is not None:
                self.faults.append(FieldFault(path, _TYPE, f"`{name}` must be {wanted}"))
            else:
                self._flags[name] = value
        if "\0" in self._command:
            self._command = "true"
            self.faults.append(FieldFault("command", _TYPE, "it has a NUL character"))

    def _check_namespace(self) -> None:
        try:
            check_namespace(self._asked.namespace)
        except UserError as error:
            self.faults.append(FieldFault("namespace", _RULE, _text(error)))

    def _written(self) -> WrittenJob:
        words = self._words()
        check_text(words)
        args = self._verb.parser.parse(words)
        job_name(args.name, may_begin_with_digit=True)  # the kind decides whether it may
        if self._verb.needs_command and not args.command:
            raise _NoCommand("no command is given", "write what each container runs")
        spec = self._verb.read_spec(args, self._asked.namespace, self._machine, self._now)
        line = shlex.join([_PROGRAM, *self._verb.words, *words])
        return WrittenJob(self._verb.submission, spec, line)

    def _words(self) -> list[str]:
        """Flags in the order of the help, then the command."""
        words = [f"--name={self._name}", f"--namespace={self._asked.namespace}"]
        for name, flag in self._verb.flags.items():
            if name in self._flags:
                words += _flag_words(flag, self._flags[name])
        command = self._command_words()
        return [
            *words,
            *(["--"] if any(each.startswith("-") for each in command) else []),
            *command,
        ]

    def _command_words(self) -> list[str]:
        if not self._command.strip():
            return []
        if not self._verb.takes_arguments:
            return [self._command]
        try:
            return shlex.split(self._command)
        except ValueError as error:
            raise _NoCommand(f"the arguments cannot be read: {error}", "close each quote") from None

    def _mends(self, error: UserError) -> bool:
        """Notes the fault, and leaves out what is wrong. False if that is not known."""
        path = _path_of(error, self._verb.flags)
        name = path.removeprefix("flags.")
        is_missing = not self._is_given(path)
        if all(each.path != path for each in self.faults):
            self.faults.append(FieldFault(path, _MISSING if is_missing else _RULE, _text(error)))
        if (path, is_missing) in self._mended:
            return False
        self._mended.add((path, is_missing))
        if path == "name":
            self._name = "job"
        elif path == "command":
            self._command = "true"
        elif not is_missing:
            self._flags.pop(name, None)
        elif name in _STAND_INS:
            self._flags[name] = _STAND_INS[name]
        else:
            return False
        return bool(path)

    def _is_given(self, path: str) -> bool:
        """Whether the body has a value there."""
        if path.startswith("flags."):
            name = path.removeprefix("flags.")
            return name in self._flags and self._flags[name] != self._verb.flags[name].standard
        texts = {"name": self._name, "command": self._command}
        return bool(texts.get(path, path).strip())


class _NoCommand(UserError):
    """What is wrong with the command."""


def _text(error: UserError) -> str:
    what = error.what.removeprefix(INVALID).strip()
    return f"{what}: {error.hint}" if error.hint else what


def _path_of(error: UserError, flags: Mapping[str, JobFlag]) -> str:
    """The field of the body that a message of the command line is about."""
    if isinstance(error, _NoCommand):
        return "command"
    for text in (error.what, error.hint):
        for name in (*_UNSET.findall(text), *_FLAG.findall(text)):
            if name == "name":
                return "name"
            if name in flags:
                return f"flags.{name}"
    return "name" if " name " in error.what else ""


def _flag_words(flag: JobFlag, value: bool | str | list[str]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield f"--{flag.name}={each}"
    elif isinstance(value, bool):
        if value != (flag.standard == "true"):
            yield f"--{flag.name}" if value else f"--{flag.name}=false"
    elif value != flag.standard:
        yield f"--{flag.name}={value}"


def _wanted_form(flag: JobFlag, value: bool | str | list[str]) -> str | None:
    """What the value must be instead; None = it has the form of the flag."""
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    if any("\0" in each for each in texts):
        return "text without a NUL character"
    match flag.kind:
        case "truth":
            return None if isinstance(value, bool) else "true or false"
        case "many":
            return None if isinstance(value, list) else "a list of texts"
    return None if isinstance(value, str) else "a text"


@cache
def _verb(type_: str) -> _Verb:
    module = import_module(f"fairlead.cli.{_COMMANDS[type_].module}")
    parser = make_parser(module, _PROGRAM)
    flags = {flag.name: flag for flag in _flags_of(parser)}
    made: SubmitVerb | ServeVerb = module.what()
    return _Verb(
        tuple(module.NAME.split()),
        parser,
        flags,
        made.submission,
        made.read_spec if isinstance(made, ServeVerb) else _at_any_time(made),
        needs_command=isinstance(made, SubmitVerb) and made.needs_command,
        takes_arguments=type_ == "sparkjob",
    )


def _at_any_time(verb: SubmitVerb) -> _SpecReader:
    return lambda args, namespace, machine, now: verb.read_spec(args, namespace, machine)


@cache
def _form(type_: str) -> JobForm:
    found, family = _verb(type_), _COMMANDS[type_].family
    [words] = [each for each in found.parser._actions if not each.option_strings]
    return JobForm(
        type=type_,
        family=family,
        kind=SERVING[type_].title if family == "serve" else found.submission.kind.KIND,
        is_served=True,
        needs_command=found.needs_command,
        command=str(words.help),
        flags=list(found.flags.values()),
    )


def _flags_of(parser: argparse.ArgumentParser) -> Iterator[JobFlag]:
    for action in parser._actions:
        name = next((each[2:] for each in action.option_strings if each.startswith("--")), "")
        is_shown = name and action.help and action.help != argparse.SUPPRESS
        if not is_shown or name in LEFT_OUT or action.dest.startswith(("global_", "help")):
            continue
        yield JobFlag(
            name=name,
            kind=_kind_of(action),
            standard=_standard(action),
            placeholder=str(action.metavar or ""),
            help=str(action.help),
        )


def _kind_of(action: argparse.Action) -> Any:
    if isinstance(action, BooleanFlag):
        return "truth"
    return "many" if isinstance(action.default, list) else "text"


def _standard(action: argparse.Action) -> str:
    if isinstance(action, BooleanFlag):
        return "true" if action.default else "false"
    return "" if isinstance(action.default, list) else str(action.default)
