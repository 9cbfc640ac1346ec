"""dcgm-exporter's command lines start our exporter: every flag and variable is taken, and what changes nothing is said once."""

from __future__ import annotations

import argparse
import shlex

import pytest

from fairlead.cli.frame.parser import make_parser
from fairlead.cli.servers import gpu_exporter
from fairlead.cli.servers.dcgm_flags import FLAGS, refuse_open_page, warnings_of
from fairlead.cli.servers.gpu_exporter import chosen_backend
from fairlead.errors import UserError

THEIRS = shlex.split("""
--collectors=f -f=f --address=:9400 -a=:9400 --collect-interval=30000 -c=30000 --kubernetes -k --use-old-namespace -o --cpu-devices=f -p=f
--configmap-data=ns:name -m=none --remote-hostengine-info=localhost:5555 -r=localhost:5555 --kubernetes-enable-pod-labels
--kubernetes-enable-pod-uid --kubernetes-gpu-id-type=uid --kubernetes-pod-label-allowlist-regex=app --devices=g:0,2-4 -d=f --no-hostname -n
--switch-devices=f -s=f --fake-gpus --web-config-file=f --web-read-timeout=10s --web-write-timeout=10s --web-systemd-socket
--xid-count-window-size=300000 -x=300000 --replace-blanks-in-model-name --rbmn -rbmn --debug --clock-events-count-window-size=1
--enable-dcgm-log --dcgm-log-level=NONE --log-format=json --pod-resources-kubelet-socket=/s --hpc-job-mapping-dir=/d --container-labels
--container-runtime-socket=/s --nvidia-resource-names=nvidia.com/a100 --kubernetes-virtual-gpus --dump-enabled --dump-directory=/d
--dump-retention=24 --dump-compression --kubernetes-enable-dra --disable-startup-validate --enable-gpu-bind-unbind-watch
--gpu-bind-unbind-poll-interval=1s --enable-pprof --config-file=f
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
    assert (args.kubernetes, args.no_hostname, args.replace_blanks_in_model_name, args.listen) == (True, True, True, ":9400")
    assert len(warnings_of(args)) == 2


@pytest.mark.parametrize("spelling", ["-rbmn", "--rbmn", "-rbmn=true", "--replace-blanks-in-model-name"])
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
    with pytest.raises(UserError, match=f"{variable} is `yes`, which is neither true nor false"):
        parsed("", {variable: "yes"})


def test_what_changes_nothing_is_said_once_per_reason() -> None:
    line = "--devices g:0 --hpc-job-mapping-dir /jobs --kubernetes-virtual-gpus -p g --dump-enabled"
    assert warnings_of(parsed(line)) == [
        "`--kubernetes-virtual-gpus`, `--hpc-job-mapping-dir`: no effect yet",
        "`--cpu-devices`, `--dump-enabled`: no effect: there is no DCGM here",
    ]


@pytest.mark.parametrize(("line", "env"), [("--web-config-file /web.yaml", {}), ("", {"DCGM_EXPORTER_WEB_CONFIG_FILE": "/web.yaml"})])
def test_a_page_that_was_to_be_guarded_is_not_open_instead(line: str, env: dict[str, str]) -> None:
    with pytest.raises(UserError, match="`--web-config-file` does not work yet"):
        refuse_open_page(parsed(line, env))
    refuse_open_page(parsed("--web-systemd-socket"))


@pytest.mark.parametrize(
    ("line", "backend"),
    [("", "nvml"), ("--backend nvml", "nvml"), ("--backend sim", "sim"), ("--fake-gpus", "sim"), ("--sim-gpus 1xTesla-T4", "sim")],
)
def test_devices_are_invented_only_for_who_asks(line: str, backend: str) -> None:
    assert chosen_backend(parsed(line)) == backend


@pytest.mark.parametrize("line", ["--scenario faults", "--all-nodes", "--backend nvml --fake-gpus", "--backend nvml --sim-gpus 1xTesla-T4"])
def test_who_asks_for_both_is_told(line: str) -> None:
    with pytest.raises(UserError):
        chosen_backend(parsed(line))


def test_dcgm_exporters_own_defaults_are_no_wish() -> None:
    told = "--kubernetes --no-hostname --devices f -p f -s f -m none -x 300000"
    assert warnings_of(parsed(f"{told} --kubernetes-gpu-id-type uid --log-format text --dump-enabled=false")) == []


def test_every_flag_has_one_name() -> None:
    spellings = [spelling for flag in FLAGS for spelling in flag.spellings]
    assert len(set(spellings)) == len(spellings)
    assert len({flag.env for flag in FLAGS}) == len(FLAGS)
