"""What the node's agent promises on a real kubelet, whether its runtime does CDI (deferred) or not (guarded).

`tests/kubelet` plays these cases on Debian's containerd 1.6, `tests/cdi` on containerd 2.
"""

from __future__ import annotations

import json

from tests.kubelet.agent import MEMORY, SECONDS, WHOLE, Line, container, shared
from tests.waiting import wait_until

SHOWS = """env | grep -E '^(NVIDIA|ALIYUN|CGPU)' | sort; cat /etc/fairlead/gpu/limits
test -w /run/fairlead/gpu/region && echo region; sleep 1000000"""


def document_003(line: Line) -> None:
    """From the label to three containers with 4308 MiB each, and a fourth that waits."""
    wait_until("whole cards first", lambda: line.shown(WHOLE) == ("1", "1"), SECONDS)
    line.label(cgpu="true")
    wait_until("then their memory", lambda: (line.shown(WHOLE), line.shown(MEMORY)) == (("0", "0"), ("14", "14")), SECONDS)
    wait_until("and their count", lambda: line.shown("aliyun.com/gpu-count") == ("1", "1"), SECONDS)
    line.create(*(shared(f"notebook-{number}", container("app", 4, SHOWS)) for number in range(3)))
    line.runs("notebook-0", "notebook-1", "notebook-2")
    line.create(shared("notebook-3", container("app", 4, SHOWS)))
    (card,) = json.loads(line.node()["metadata"]["annotations"]["fairlead.io/gpus"])
    assert (card["model"], card["memoryMiB"], card["units"], card["mode"], card["health"]) == ("Tesla T4", 15079, 14, "shared", "Healthy")
    for number in range(3):
        name = f"notebook-{number}"
        wait_until(f"{name} has said all", lambda name=name: "region" in line.log(name).splitlines(), SECONDS)
        assert line.log(name).splitlines() == [
            "ALIYUN_COM_GPU_MEM_CONTAINER=4",
            "ALIYUN_COM_GPU_MEM_DEV=14",
            "ALIYUN_COM_GPU_MEM_IDX=0",
            "ALIYUN_COM_GPU_MEM_POD=4",
            "ALIYUN_COM_GPU_VISIBLE_DEVICES=0",
            "CGPU_DISABLE=true",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            f"NVIDIA_VISIBLE_DEVICES={card['uuid']}",
            "version 1",
            f"gpu {card['uuid']} limit_bytes {4308 * 1024 * 1024} core_percent 0 context_bytes 0",
            "region /run/fairlead/gpu/region",
            "region",
        ]
        said = line.pod(name)["metadata"]["annotations"]
        assert said["ALIYUN_COM_GPU_MEM_ASSIGNED"] == said["scheduler.framework.gpushare.assigned"] == "true"
        assert int(said["ALIYUN_COM_GPU_MEM_ASSIGN_TIME"]) >= int(said["ALIYUN_COM_GPU_MEM_ASSUME_TIME"])
    assert sorted((row["pod"], row["units"], row["mib"]) for row in line.agent.grants()) == [(f"notebook-{n}", 4, 4308) for n in range(3)]
    need = "need 4 GiB, largest free 2 GiB"
    wait_until("the fourth says why it waits", lambda: any(need in each for each in line.events("notebook-3")), SECONDS)
