"""dcgm-exporter's command lines start Fairlead's exporter: every flag and variable is accepted, and
those without effect are reported once.
"""

from __future__ import annotations

import argparse
import math
import shlex

import pytest

from fairlead.cli.frame.parser import make_parser
from fairlead.cli.servers import gpu_exporter
from fairlead.cli.servers.dcgm_flags import FLAGS, warnings_of
from fairlead.cli.servers.exporter_flags import OWN_FLAGS
from fairlead.cli.servers.gpu_exporter import chosen_backend
from fairlead.errors import UserError

THEIRS = shlex.split("""
--collectors=f -f=f --address=:9400 -a=:9400 --collect-interval=30000 -c=30000 --kubernetes -k
--use-old-namespace -o --cpu-devices=f -p=f --configmap-data=ns:name -m=none
--remote-hostengine-info=localhost:5555 -r=localhost:5555 --kubernetes-enable-pod-labels
--kubernetes-enable-pod-uid --kubernetes-gpu-id-type=uid --kubernetes-pod-label-allowlist-regex=app
--devices=g:0,2-4 -d=f --no-hostname -n --switch-devices=f -s=f --fake-gpus --web-config-file=f
--web-read-timeout=10s --web-write-timeout=10s --web-systemd-socket --xid-count-window-size=300000
-x=300000 --replace-blanks-in-model-name --rbmn -rbmn --debug --clock-events-count-window-size=1
--enable-dcgm-log --dcgm-log-level=NONE --log-format=json --pod-resources-kubelet-socket=/s
--hpc-job-mapping-dir=/d --container-labels --container-runtime-socket=/s
--nvidia-resource-names=nvidia.com/a100 --kubernetes-virtual-gpus --dump-enabled --dump-directory=/d
--dump-retention=24 --dump-compression --kubernetes-enable-dra --disable-startup-validate
--enable-gpu-bind-unbind-watch --gpu-bind-unbind-poll-interval=1s --enable-pprof --config-file=f
--watch-max-keep-age=10m --watch-max-keep-samples=0 --max-concurrent-scrapes=3
--enable-exporter-metrics --health-require-gpus
""")
"""Every flag in pkg/cmd/app.go of dcgm-exporter, with an argument where it takes one."""


def parsed(line: str, env: dict[str, str] | None = None) -> argparse.Namespace:
    args = make_parser(gpu_exporter, "fairlead").parse(shlex.split(line))
    gpu_exporter.fill_from_variables(args, env or {})
    return args


@pytest.mark.parametrize("flag", THEIRS)
def test_every_flag_of_dcgm_exporter_is_taken(flag: str) -> None:
    parsed(flag)
    if "=" in flag:
        parsed(flag.replace("=", " ", 1))


def test_all_of_them_at_once() -> None:
    args = parsed(" ".join(THEIRS))
    assert (args.kubernetes, args.no_hostname, args.replace_blanks_in_model_name, args.listen) == (
        True,
        True,
        True,
        ":9400",
    )
    assert args.nvidia_resource_names == (
        "nvidia.com/a100",
    ) and args.kubernetes_pod_label_allowlist_regex == ("app",)
    assert all(
        sentence.partition(": ")[2].startswith("no effect") for sentence in warnings_of(args)
    )


def one_dash(flag: str) -> list[str]:
    """The spellings that Go's flag package accepts: one dash or two, whatever the length, with the
    value after a space or `=`.
    """
    bare = flag.lstrip("-")
    words = [f"-{bare}", f"--{bare}"]
    return words + [word.replace("=", " ", 1) for word in words if "=" in word]


@pytest.mark.parametrize("flag", THEIRS)
def test_one_dash_is_as_good_as_two(flag: str) -> None:
    found = {
        repr(sorted((name, value) for name, value in vars(parsed(word)).items() if name != "words"))
        for word in one_dash(flag)
    }
    assert len(found) == 1


def test_letters_are_not_put_together_and_an_unknown_flag_is_reported() -> None:
    for line, words in (
        ("-kn", "unknown flag: --kn"),
        ("-colectors=x", "unknown flag: --colectors"),
        ("-k=maybe", 'invalid argument "maybe" for "--kubernetes" flag: it is true or false'),
    ):
        with pytest.raises(UserError) as caught:
            parsed(line)
        assert caught.value.what == words
    assert parsed("-k=false -n").kubernetes is False
    assert parsed("-f -x").collectors == "-x", "the next word is the value, as in Go"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("backend", "sim", "sim"),
        ("nvml-library", "/lib/x.so", "/lib/x.so"),
        ("compat", "dcgm,custom", "dcgm,custom"),
        ("hostname-label", "both", "both"),
        ("slow-interval", "90s", 90.0),
        ("slow-interval", "2m", 120.0),
        ("call-timeout", "5", 5.0),
        ("stale-after", "1m30s", 90.0),
        ("pod-map-interval", "1s", 1.0),
        ("pod-map-ttl", "2m", 120.0),
        ("process-metrics", "off", "off"),
        ("mig-device-fields", "repeat", "repeat"),
        ("strict-csv", "true", True),
        ("kmsg", "off", "off"),
        ("grants-file", "/g.json", "/g.json"),
        ("run-dir", "/r", "/r"),
        ("kubelet-dir", "/k", "/k"),
        ("all-nodes", "1", True),
        ("sim-gpus", "1xTesla-T4", "1xTesla-T4"),
    ],
)
def test_every_flag_of_fairlead_has_a_variable_and_both_are_read_alike(
    name: str, text: str, value: object
) -> None:
    field, variable = name.replace("-", "_"), f"FAIRLEAD_EXPORTER_{name.replace('-', '_').upper()}"
    assert (
        getattr(parsed("", {variable: text}), field)
        == getattr(parsed(f"--{name}={text}"), field)
        == value
    )
    assert getattr(parsed("", {variable: ""}), field) == getattr(parsed(""), field), (
        "an empty variable sets nothing"
    )


def test_no_flag_of_fairlead_is_without_a_test() -> None:
    (marks,) = (
        mark
        for mark in test_every_flag_of_fairlead_has_a_variable_and_both_are_read_alike.pytestmark
    )  # type: ignore[attr-defined]
    of_theirs = {"listen", "collectors", "collect_interval"}
    assert {flag.name for flag in OWN_FLAGS} - of_theirs == {
        name.replace("-", "_") for name, _, _ in marks.args[1]
    }


@pytest.mark.parametrize(
    ("line", "env", "words"),
    [
        (
            "--call-timeout 0",
            {},
            (
                "`--call-timeout` is `0`, which is not a time from 1 to 3600 seconds, "
                "such as 60, 60s or 1m30s"
            ),
        ),
        (
            "",
            {"FAIRLEAD_EXPORTER_CALL_TIMEOUT": "soon"},
            (
                "FAIRLEAD_EXPORTER_CALL_TIMEOUT is `soon`, which is not a time from 1 to "
                "3600 seconds, such as 60, 60s or 1m30s"
            ),
        ),
        (
            "",
            {"DCGM_EXPORTER_INTERVAL": "5s"},
            (
                "DCGM_EXPORTER_INTERVAL is `5s`, which is not a whole number of "
                "milliseconds from 100 to 86400000, such as 5000"
            ),
        ),
        (
            "-c 50",
            {},
            (
                "`--collect-interval` is `50`, which is not a whole number of "
                "milliseconds from 100 to 86400000, such as 5000"
            ),
        ),
        (
            "",
            {"FAIRLEAD_EXPORTER_STRICT_CSV": "yes"},
            "FAIRLEAD_EXPORTER_STRICT_CSV is `yes`, which is neither true nor false",
        ),
        ("--backend dcgm", {}, "`--backend` is `dcgm`, which is none of nvml, sim"),
        ("--log-format xml", {}, "`--log-format` is `xml`, which is none of text, json"),
        (
            "-x 0",
            {},
            (
                "`--xid-count-window-size` is `0`, which is not a whole number "
                "of milliseconds from 1 to 86400000, such as 5000"
            ),
        ),
        (
            "--web-read-timeout 10ms",
            {},
            (
                "`--web-read-timeout` is `10ms`, which is not a time from 0.1 to "
                "3600 seconds, such as 60, 60s or 1m30s"
            ),
        ),
        (
            "--kubernetes-gpu-id-type uuid",
            {},
            "`--kubernetes-gpu-id-type` is `uuid`, which is none of uid, device-name",
        ),
    ],
)
def test_what_is_not_of_its_kind_is_reported_with_its_place(
    line: str, env: dict[str, str], words: str
) -> None:
    with pytest.raises(UserError) as caught:
        parsed(line, env)
    assert caught.value.what == words


def test_a_time_of_zero_is_no_limit_as_in_gos_servers() -> None:
    args = parsed("--web-read-timeout=0 --web-write-timeout 0s")
    assert (args.web_read_timeout, args.web_write_timeout) == (math.inf, math.inf)


def test_lists_may_be_repeated() -> None:
    args = parsed(
        "--nvidia-resource-names a,b --nvidia-resource-names c --compat dcgm --compat custom"
    )
    assert (args.nvidia_resource_names, args.compat) == (("a", "b", "c"), "dcgm,custom")
    assert parsed("", {"NVIDIA_RESOURCE_NAMES": "a, b"}).nvidia_resource_names == ("a", "b")


def test_a_configuration_file_comes_after_flags_and_variables() -> None:
    args = parsed("-f mine.csv", {"DCGM_EXPORTER_INTERVAL": "1000", "FAIRLEAD_EXPORTER_KMSG": ""})
    assert {"collectors", "collect_interval"} <= args.given_flags and "kmsg" not in args.given_flags


@pytest.mark.parametrize(
    "spelling", ["-rbmn", "--rbmn", "-rbmn=true", "--replace-blanks-in-model-name"]
)
def test_a_flag_of_several_letters_behind_one_dash(spelling: str) -> None:
    args = parsed(f"-r host:5555 {spelling}")
    assert args.replace_blanks_in_model_name is True
    assert args.remote_hostengine_info == "host:5555"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("DCGM_EXPORTER_KUBERNETES", "kubernetes"),
        ("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", "kubernetes_enable_pod_uid"),
        ("DCGM_EXPORTER_NO_HOSTNAME", "no_hostname"),
        ("DCGM_EXPORTER_USE_OLD_NAMESPACE", "use_old_namespace"),
        ("DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", "replace_blanks_in_model_name"),
        ("DCGM_EXPORTER_USE_FAKE_GPUS", "fake_gpus"),
        ("KUBERNETES_VIRTUAL_GPUS", "kubernetes_virtual_gpus"),
    ],
)
def test_variables_switch_flags_on_and_flags_come_first(variable: str, name: str) -> None:
    assert getattr(parsed(""), name) is False
    assert getattr(parsed("", {variable: "true"}), name) is True
    assert getattr(parsed(f"--{name.replace('_', '-')}=false", {variable: "true"}), name) is False
    with pytest.raises(UserError, match=f"{variable}.*`yes`"):
        parsed("", {variable: "yes"})


def test_what_changes_nothing_is_reported_once_per_reason() -> None:
    line = (
        "--devices g:0 --container-labels --container-runtime-socket /s --kubernetes-virtual-gpus "
        "-p g --dump-enabled"
    )
    assert warnings_of(parsed(line)) == [
        (
            "`--container-labels`, `--container-runtime-socket`: no effect: the kubelet names "
            "containers, their runtime is not asked"
        ),
        "`--cpu-devices`, `--dump-enabled`: no effect: there is no DCGM here",
    ]


@pytest.mark.parametrize(
    ("line", "backend"),
    [
        ("", "nvml"),
        ("--backend nvml", "nvml"),
        ("--backend sim", "sim"),
        ("--fake-gpus", "sim"),
        ("--sim-gpus 1xTesla-T4", "sim"),
    ],
)
def test_devices_are_invented_only_on_request(line: str, backend: str) -> None:
    assert chosen_backend(parsed(line)) == backend


@pytest.mark.parametrize(
    "line",
    [
        "--scenario faults",
        "--all-nodes",
        "--backend nvml --fake-gpus",
        "--backend nvml --sim-gpus 1xTesla-T4",
    ],
)
def test_a_request_for_both_is_reported(line: str) -> None:
    with pytest.raises(UserError):
        chosen_backend(parsed(line))


def test_dcgm_exporters_own_defaults_are_no_wish() -> None:
    message = "--kubernetes --no-hostname --devices f -p f -s f -m none -x 300000"
    assert (
        warnings_of(
            parsed(f"{message} --kubernetes-gpu-id-type uid --log-format text --dump-enabled=false")
        )
        == []
    )


def test_every_flag_has_one_name() -> None:
    spellings = [spelling for flag in FLAGS for spelling in flag.spellings]
    assert len(set(spellings)) == len(spellings)
    assert len({flag.env for flag in FLAGS}) == len(FLAGS)
