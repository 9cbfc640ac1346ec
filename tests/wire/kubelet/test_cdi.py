"""CDI files, written out as the specification has them; `tests/kubelet` gives one to a real runtime."""

from __future__ import annotations

import json

import pytest

from fairlead.model.devices.kubelet import ContainerEdits, MountedFile
from fairlead.wire.kubelet.cdi import cdi_device, cdi_file_name, render_cdi


def test_all_that_a_container_gets_stands_under_its_one_device() -> None:
    limits = MountedFile("/var/lib/fairlead/gpu/limits/t", "/etc/fairlead/gpu/limits")
    region = MountedFile("/run/fairlead/gpu/t", "/run/fairlead/gpu/region", is_read_only=False)
    edits = ContainerEdits({"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2", "EMPTY": ""}, ("/dev/nvidia0", "/dev/nvidiactl"), (limits, region))
    assert json.loads(render_cdi("0123456789abcdef", edits)) == {
        "cdiVersion": "0.5.0",
        "kind": "fairlead.io/gpu",
        "devices": [
            {
                "name": "alloc-0123456789abcdef",
                "containerEdits": {
                    "env": ["NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2", "EMPTY="],
                    "deviceNodes": [{"path": "/dev/nvidia0"}, {"path": "/dev/nvidiactl"}],
                    "mounts": [
                        {
                            "hostPath": "/var/lib/fairlead/gpu/limits/t",
                            "containerPath": "/etc/fairlead/gpu/limits",
                            "options": ["bind", "ro", "nosuid", "nodev"],
                        },
                        {
                            "hostPath": "/run/fairlead/gpu/t",
                            "containerPath": "/run/fairlead/gpu/region",
                            "options": ["bind", "rw", "nosuid", "nodev"],
                        },
                    ],
                },
            }
        ],
    }


def test_what_there_is_none_of_is_left_out() -> None:
    (device,) = json.loads(render_cdi("t", ContainerEdits({"A": "b"})))["devices"]
    assert device["containerEdits"] == {"env": ["A=b"]}


def test_a_device_that_gives_nothing_is_not_written() -> None:
    with pytest.raises(ValueError, match="device `alloc-t` gives nothing"):
        render_cdi("t", ContainerEdits())


def test_names() -> None:
    assert cdi_device("t") == "fairlead.io/gpu=alloc-t"
    assert cdi_file_name("t") == "fairlead.io-gpu-alloc-t.json"
