"""`--port` means the same for every server, beside `--listen`; a default port in use is replaced by
a free one where a user reads the address.
"""

from __future__ import annotations

import argparse
import importlib
import io
import socket
from typing import cast

import pytest

from fairlead.cli.frame.context import GlobalOptions
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import VerbModule, make_parser
from fairlead.cli.servers.gpu_exporter import fill_from_variables
from fairlead.errors import UserError
from fairlead.run.invocation import Invocation, free_or_named

DEFAULTS = {
    "console": "127.0.0.1:8080",
    "cluster-exporter": ":9401",
    "gpu-exporter": ":9400",
    "scheduler-extender": "",
    "device-plugin": ":9403",
    "quota-controller": "127.0.0.1:9402",
    "people-controller": "127.0.0.1:9404",
    "usage-recorder": "127.0.0.1:9405",
    "api-server": "127.0.0.1:6443",
    "admission-webhook": ":8443",
}


def parsed(verb: str, *words: str) -> argparse.Namespace:
    module = cast(
        "VerbModule", importlib.import_module(f"fairlead.cli.servers.{verb.replace('-', '_')}")
    )
    args = make_parser(module, "fairlead").parse(words)
    if verb == "gpu-exporter":
        fill_from_variables(args, {})
    return args


@pytest.mark.parametrize("verb", DEFAULTS)
def test_a_port_replaces_that_of_the_default_address(verb: str) -> None:
    host = DEFAULTS[verb].rpartition(":")[0] or (
        "127.0.0.1" if verb == "scheduler-extender" else ""
    )
    assert parsed(verb).listen == DEFAULTS[verb]
    assert parsed(verb, "--port", "1234").listen == f"{host}:1234"
    assert parsed(verb, "--listen", "0.0.0.0:7").listen == "0.0.0.0:7"


@pytest.mark.parametrize("verb", DEFAULTS)
@pytest.mark.parametrize(
    "words", [("--port", "1", "--listen", ":2"), ("--listen", ":2", "--port", "1")]
)
def test_two_addresses_are_one_too_many(verb: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"`--listen`.*`--port`"):
        parsed(verb, *words)


@pytest.mark.parametrize("verb", DEFAULTS)
def test_what_is_no_port(verb: str) -> None:
    with pytest.raises(UserError, match=r"`70000`.*65535"):
        parsed(verb, "--port", "70000")


@pytest.mark.parametrize("verb", ["console", "cluster-exporter", "api-server"])
def test_a_default_port_that_is_taken_gives_way_and_a_named_port_does_not(verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        stream = io.StringIO()
        args = parsed(verb)
        args.listen = f"127.0.0.1:{port}"
        with free_or_named(
            Invocation(args, GlobalOptions(), {}, Messages("fairlead", stream))
        ) as sock:
            assert sock.getsockname()[1] not in (0, port)
            assert stream.getvalue() == (
                f"warning: port {port} is taken: listening on {sock.getsockname()[1]}\n"
            )
        for flag, value, address in (
            ("--port", str(port), DEFAULTS[verb].rpartition(":")[0] or "*"),
            ("--listen", f"127.0.0.1:{port}", "127.0.0.1"),
        ):
            with pytest.raises(UserError) as caught:
                free_or_named(
                    Invocation(
                        parsed(verb, flag, value), GlobalOptions(), {}, Messages("fairlead", stream)
                    )
                )
            assert caught.value.what == f"cannot listen on `{address}:{port}`: the port is taken"
