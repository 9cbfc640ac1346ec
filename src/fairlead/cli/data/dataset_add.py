"""`fairlead dataset add` (docs/spec/datasets.md#other-sources)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.cache_making import add_cache_flags, make_cache, read_quota
from fairlead.cli.data.dataset_accelerate import accelerate, checked_folder
from fairlead.cli.data.waiting import data_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import check_output
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.acceleration import CachedSource
    from fairlead.model.jobs.datasets import SecretOption

NAME = "dataset add"
HELP = """Make a data set of Fluid over an object store, a web site, a claim or another source, with
an Alluxio runtime that caches it.

Keys are never arguments. Put them into a Secret of the namespace, and name it with --from-secret:
its keys are `accessKeyId` and `accessKeySecret`, or those after the colon."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the data set, in the chosen namespace")
    parser.add_argument(
        "--mount",
        metavar="URI",
        required=True,
        help="the source: s3://bucket/folder, oss://…, https://…, pvc://claim/folder, …",
    )
    parser.add_argument(
        "--endpoint", metavar="URL", default="", help="of the object store (s3, oss)"
    )
    parser.add_argument(
        "--from-secret",
        metavar="SECRET[:ID,KEY]",
        default="",
        help="the Secret with both keys of the object store (s3, oss)",
    )
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of Alluxio for the source; may be repeated",
    )
    parser.add_argument(
        "--secret-option",
        metavar="NAME=SECRET/KEY",
        action="append",
        default=[],
        help="an option whose value is in a Secret; may be repeated",
    )
    add_cache_flags(parser, "16Gi; of a claim as `accelerate`; 150Gi with SSD")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args)
    from fairlead.model.jobs.acceleration import Acceleration
    from fairlead.rules.data.acceleration import chosen_acceleration
    from fairlead.rules.data.mounts import CLAIM_SCHEME
    from fairlead.rules.data.sources import UNKNOWN_MEMORY, check_source, uri_fault

    what, hint = uri_fault(args.mount)
    if what:
        raise UserError(f"--mount: {what}", hint)
    quota = read_quota(args)
    source = _source(args)
    cluster, namespace = data_of(context), context.world.namespace()
    cache = (args.workers, args.medium)
    if args.mount.startswith(CLAIM_SCHEME):
        if source.options or source.secrets:
            what = f"`{args.mount}` is a claim, which has neither options nor keys"
            raise UserError(what, "leave out --endpoint, --from-secret and options")
        claim, _, folder = args.mount.removeprefix(CLAIM_SCHEME).partition("/")
        folder = checked_folder("--mount", folder)
        asked = Acceleration(namespace, claim, args.name, folder, *cache, quota)
        return accelerate(asked, cluster, args, context)
    if not quota and args.medium == "MEM":
        quota = UNKNOWN_MEMORY
    asked = Acceleration(namespace, "", args.name, "", *cache, quota, source=source)
    facts = cluster.facts(namespace, "", args.name)
    chosen = chosen_acceleration(
        facts, asked, has_workers=bool(args.workers), has_quota=bool(quota)
    )
    secrets = {each: cluster.has_secret(namespace, each) for each in source.secret_names}
    return make_cache(chosen, facts, check_source(facts, chosen, source, secrets), args, context)


def _source(args: argparse.Namespace) -> CachedSource:
    """Raises UserError for bad options. No value that may be a key is repeated in an error."""
    from fairlead.model.jobs.acceleration import CachedSource
    from fairlead.rules.data.sources import ENDPOINT_OPTIONS, scheme_of

    scheme = scheme_of(args.mount)
    options = dict(map(_option, args.option))
    if args.endpoint:
        if scheme not in ENDPOINT_OPTIONS:
            hint = f"--endpoint is for {' and '.join(ENDPOINT_OPTIONS)}; else use --option"
            raise UserError(f"`{scheme}` has no endpoint", hint)
        if "@" in args.endpoint or "?" in args.endpoint:
            raise UserError("--endpoint names a user or a query", "only scheme, host and port")
        options[ENDPOINT_OPTIONS[scheme]] = args.endpoint
    secrets = [*_both_keys(args.from_secret, scheme), *map(_secret_option, args.secret_option)]
    names = [*options, *(each.option for each in secrets)]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise UserError(f"the option `{twice}` is named twice", "Fluid refuses that; name it once")
    return CachedSource(args.mount, tuple(options.items()), tuple(secrets))


def _option(text: str) -> tuple[str, str]:
    from fairlead.wire.text.secret_names import is_secret_name
    from fairlead.wire.text.secret_words import without_secrets

    name, mark, value = text.partition("=")
    if not mark or not name:
        raise UserError("--option has no `=`", "NAME=VALUE, e.g. `fs.oss.endpoint=oss.example`")
    if is_secret_name(name) or without_secrets(value) != value:
        raise UserError(
            f"the option `{name}` looks like a key",
            f"put its value into a Secret: --secret-option {name}=SECRET/KEY",
        )
    return name, value


def _both_keys(text: str, scheme: str) -> list[SecretOption]:
    from fairlead.model.jobs.datasets import SecretOption
    from fairlead.rules.data.sources import DEFAULT_KEYS, KEY_OPTIONS, SECRET_KEY, SECRET_NAME

    if not text:
        return []
    if scheme not in KEY_OPTIONS:
        hint = f"it is for {' and '.join(KEY_OPTIONS)}; else use --secret-option NAME=SECRET/KEY"
        raise UserError(f"--from-secret does not fit `{scheme}`", hint)
    name, mark, rest = text.partition(":")
    keys = tuple(rest.split(",")) if mark else DEFAULT_KEYS
    are_keys = len(keys) == 2 and all(map(SECRET_KEY.fullmatch, keys))
    if not SECRET_NAME.fullmatch(name) or not are_keys:
        hint = (
            "SECRET, or SECRET:ID,KEY with the names of two keys in it, never the keys themselves"
        )
        raise UserError("--from-secret is no name of a Secret", hint)
    return [
        SecretOption(option, name, key)
        for option, key in zip(KEY_OPTIONS[scheme], keys, strict=True)
    ]


def _secret_option(text: str) -> SecretOption:
    from fairlead.model.jobs.datasets import SecretOption
    from fairlead.rules.data.sources import SECRET_KEY, SECRET_NAME

    option, _, value = text.partition("=")
    name, _, key = value.partition("/")
    if not option or not SECRET_NAME.fullmatch(name) or not SECRET_KEY.fullmatch(key):
        hint = "NAME=SECRET/KEY, e.g. `aws.secretKey=keys/secret`, never the key itself"
        raise UserError("--secret-option names no key of a Secret", hint)
    return SecretOption(option, name, key)
