"""Random valid command lines of `submit`: every flag, alone and with others, with any text as a
value where text is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

Words = list[str]

ANY_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12) | st.sampled_from(
    [
        "1e3",
        "0o17",
        "yes",
        "null",
        "~",
        "1:30",
        "a: b",
        "- x",
        "#",
        "0x1F",
        "1_000",
        ".inf",
        "2026-01-05",
        "é",
        "=",
        "{}",
        "!x",
        "&a",
        "*a",
        "%",
    ]
)
NAME = st.from_regex(r"\A[a-z]([-a-z0-9]{0,12}[a-z0-9])?\Z")
LABEL = st.from_regex(r"\A([A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?)?\Z")
COUNT = st.integers(0, 9).map(str)
UNITS = st.integers(1, 9).map(str)
CORES = st.sampled_from(["0", "5", "30", "100"])
CPU = st.sampled_from(["1", "500m", "2.5", "1e1"])
SIZE = st.sampled_from(["1Gi", "512Mi", "1e9", "2G", "1073741824"])
_TIME = st.sampled_from(["1h2m3s", "90s", "1.5m", "0"])
PATH = st.from_regex(r"\A(/[a-zA-Z0-9._-]{1,8}){1,3}\Z").filter(
    lambda path: ".." not in path.split("/") and "." not in path.split("/")
)

_SHARED = {
    "gpumemory": UNITS,
    "gpucore": CORES,
    "retry": COUNT,
    "priority": NAME,
    "scheduler": NAME,
    "service-account": NAME,
    "device": st.sampled_from(["amd.com/gpu=1", "a.b/c=3"]),
    "env": st.tuples(st.sampled_from(["A", "B_1", "gpus"]), ANY_TEXT).map("=".join),
    "env-from-secret": NAME.map(lambda name: f"S={name}:k"),
    "annotation": st.tuples(NAME, ANY_TEXT).map("=".join),
    "label": st.tuples(NAME, LABEL).map("=".join),
    "selector": st.tuples(NAME, LABEL).map("=".join),
    "toleration": st.sampled_from(["all", "a=b:NoSchedule,Equal", "c:NoExecute", "d"]),
    "image-pull-secret": NAME,
    "image-pull-policy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
    "share-memory": SIZE,
    "shell": st.sampled_from(["sh", "bash"]),
    "working-dir": PATH,
    "data": st.tuples(NAME, PATH).map(":".join),
    "data-dir": PATH.map(lambda path: f"{path}:/host{path}"),
    "config-file": PATH.map(lambda path: f"/etc/hostname:/conf{path}"),
    "running-timeout": _TIME,
    "ttl-after-finished": _TIME,
    "restart-policy": st.sampled_from(["Never", "OnFailure"]),
}
_ANY_KIND = {
    **_SHARED,
    "gpus": COUNT,
    "clean-task-policy": st.sampled_from(["None", "Running", "All"]),
}
_TRUTHS = ("queue", "gang", "rdma", "hostNetwork", "hostIPC", "hostPID", "tensorboard")
_ONE_SIZE = {"cpu": CPU, "memory": SIZE}
_ELASTIC = {
    **{
        name: values
        for name, values in _ANY_KIND.items()
        if name not in ("running-timeout", "ttl-after-finished")
    },
    "job-restart-policy": st.sampled_from(["Never", "OnFailure"]),
    "job-backoff-limit": COUNT,
    "launcher-selector": _SHARED["selector"],
    "launcher-annotation": _SHARED["annotation"],
    "worker-annotation": _SHARED["annotation"],
}
_LABELLED = {"annotation": _SHARED["annotation"], "label": _SHARED["label"]}
_RAY_ROLES = {
    **{
        f"{role}-{part}": values
        for role in ("head", "worker")
        for part, values in (("cpu", CPU), ("memory", SIZE), ("gpu", COUNT))
    },
    **{f"{role}-image": st.sampled_from(["i:2", "r/i"]) for role in ("head", "worker")},
}
_ROLES = ("worker", "ps", "chief", "evaluator")
_OWN = {
    "mpijob": {**_ANY_KIND, **_ONE_SIZE},
    "pytorchjob": {
        **_ANY_KIND,
        **_ONE_SIZE,
        "nproc-per-node": st.sampled_from(["auto", "gpu", "cpu", "4"]),
    },
    "tfjob": {
        **_ANY_KIND,
        **{f"{role}-cpu": st.sampled_from(["1", "500m"]) for role in _ROLES},
        **{f"{role}-cpu-limit": st.sampled_from(["2", "3"]) for role in _ROLES},
        **{f"{role}-memory": st.just("1Gi") for role in _ROLES},
        **{f"{role}-selector": st.tuples(NAME, LABEL).map("=".join) for role in _ROLES},
        **{f"{role}-port": st.integers(1, 65535).map(str) for role in ("worker", "ps", "chief")},
        **{
            f"{role}-affinity-policy": st.sampled_from(["none", "spread", "binpack"])
            for role in ("worker", "ps")
        },
        **{
            f"{role}-affinity-constraint": st.sampled_from(["preferred", "required"])
            for role in ("worker", "ps")
        },
        "ps": COUNT,
        "ps-gpus": COUNT,
        "success-policy": st.sampled_from(["ChiefWorker", "AllWorkers"]),
        "role-sequence": st.sampled_from(["w,p,c,e", "p,w"]),
    },
    "rayjob": {
        **_SHARED,
        **_RAY_ROLES,
        "active-deadline-seconds": _TIME,
        "ray-version": st.sampled_from(["2.46.0", "2.9"]),
        "pre-stop-command": ANY_TEXT,
        "autoscaler-cpu": CPU,
        "autoscaler-memory": SIZE,
        "autoscaler-image": st.just("a:1"),
        "autoscaler-image-pull-policy": st.sampled_from(["Always", "Never"]),
        "autoscaler-idle-timeout-seconds": COUNT,
        "autoscaler-upscaling-mode": st.sampled_from(["Default", "Conservative", "Aggressive"]),
        "head-service-type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]),
        "worker-min-replicas": st.sampled_from(["0", "1"]),
        "worker-max-replicas": st.sampled_from(["0", "4", "9"]),
        "worker-num-of-hosts": st.integers(1, 4).map(str),
    },
    "deepspeedjob": {**_ELASTIC, **_ONE_SIZE},
    "etjob": {
        **_ELASTIC,
        **_ONE_SIZE,
        "max-workers": st.integers(4, 99).map(str),
        "min-workers": st.just("1"),
        "max-wait-time": COUNT,
        "worker-restart-policy": st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"]),
    },
    "volcanojob": {
        **_LABELLED,
        "min-available": st.sampled_from(["0", "1"]),
        "queue": NAME,
        "scheduler-name": NAME,
        "task-name": NAME,
        "task-images": st.sampled_from(["a", "a:1,b", "x/y:1,z,z"]),
        "task-cpu": CPU,
        "task-memory": SIZE,
        "task-gpus": COUNT,
        "task-port": st.integers(0, 65535).map(str),
    },
    "sparkjob": {
        **_LABELLED,
        "image": st.just("s:2"),
        "main-class": st.from_regex(r"\A[a-z]{1,5}(\.[A-Za-z]{1,8}){1,3}\Z"),
        "jar": st.sampled_from(["local:///a.jar", "s3a://b/c.jar"]),
        "spark-version": st.sampled_from(["3.5.0", "4.0.1"]),
        **{f"{role}-cpu-request": st.integers(1, 9).map(str) for role in ("driver", "executor")},
        **{
            f"{role}-memory-request": st.sampled_from(["500m", "2g", "512"])
            for role in ("driver", "executor")
        },
        "driver-service-account": NAME,
    },
}
_OWN_TRUTHS: dict[str, tuple[str, ...]] = {
    "mpijob": ("mounts-on-launcher", "gputopology"),
    "pytorchjob": (),
    "tfjob": ("chief", "evaluator"),
    "rayjob": ("enable-autoscaling", "suspend"),
    "etjob": ("spot-instance",),
    "deepspeedjob": (),
}
_COUNTS = {"rayjob": "worker-replicas", "volcanojob": "task-replicas", "sparkjob": "replicas"}
"""The flag for the number of workers, where it is not `workers`."""
_ELASTIC_KINDS = ("etjob", "deepspeedjob")
_PLAIN = ("volcanojob", "sparkjob")
"""Kinds without the flags that all others have."""
_REPEATED_ONCE = ("data", "data-dir", "config-file")  # two with the same path are refused
_WHOLE = ("gpus", "ps-gpus", "worker-gpu", "head-gpu")


def meetable(names: Iterable[str]) -> list[str]:
    """Removes requests that no node can meet: whole GPUs beside shared ones, and GPU cores without
    GPU memory.
    """
    names = list(names)
    unwanted = _WHOLE if "gpumemory" in names else ("gpucore",)
    return [name for name in names if name not in unwanted]


@st.composite
def flag_sets(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(sorted(_OWN))) -> Words:
    """`KIND --name=… … -- command`."""
    kind = draw(st.sampled_from(kinds))
    values = _OWN[kind]
    names = draw(st.lists(st.sampled_from(sorted(values)), max_size=10))
    seen: set[str] = set()
    is_plain = kind in _PLAIN
    words = [
        kind,
        f"--name={draw(NAME)}",
        *([] if is_plain else ["--image=i:1"]),
        f"--{_COUNTS.get(kind, 'workers')}={draw(st.integers(1, 4))}",
    ]
    for name in meetable(names):
        if name in _REPEATED_ONCE and name in seen:
            continue
        seen.add(name)
        words.append(f"--{name}={draw(values[name])}")
    if is_plain:
        return [*words, "--", draw(ANY_TEXT.filter(bool)), "x"]
    if kind in _ELASTIC_KINDS:
        words.append("--ssh-secret=keys")  # otherwise each line generates its own keys
    words += [
        f"--{name}"
        for name in draw(
            st.lists(st.sampled_from([*_TRUTHS, *_OWN_TRUTHS[kind]]), max_size=3, unique=True)
        )
    ]
    if draw(st.booleans()):
        words += [
            "--sync-mode=git",
            f"--sync-source={draw(st.sampled_from(['https://h/r.git', 'git@h:r']))}",
        ]
    return [*words, "--", draw(ANY_TEXT.filter(bool)), "x"]


def drawn_flags(kind: str) -> set[str]:
    """The flags that `flag_sets` draws for this kind, without dashes."""
    plain = () if kind in _PLAIN else (*_TRUTHS, "image", "sync-mode", "sync-source")
    own = (*_OWN[kind], *_OWN_TRUTHS.get(kind, ()), _COUNTS.get(kind, "workers"))
    return {*plain, *own, *("ssh-secret",) * (kind in _ELASTIC_KINDS)}


_CRON = {
    "schedule": st.sampled_from(
        ["0 22 * * *", "@daily", "@every 1h30m", "TZ=Asia/Tokyo 5 4 * * 1"]
    ),
    "concurrency-policy": st.sampled_from(["Allow", "Forbid", "Replace"]),
    "deadline": st.sampled_from(["2126-10-01T13:00:00Z", "2126-10-01T21:00:12+08:00"]),
    "history-limit": COUNT,
}


@st.composite
def cron_flag_sets(draw: st.DrawFn) -> Words:
    """`tfjob --name=… … -- command`: the words after `arena cron`."""
    words = draw(flag_sets(("tfjob",)))
    place = words.index("--")
    flags = [word for word in words[1:place] if word != "--tensorboard"]
    chosen = {"schedule", *draw(st.sets(st.sampled_from(sorted(_CRON))))}
    flags += [f"--{flag}={draw(_CRON[flag])}" for flag in sorted(chosen)]
    return ["tfjob", *flags, *["--suspend"] * draw(st.integers(0, 1)), *words[place:]]


def drawn_cron_flags() -> set[str]:
    return {*drawn_flags("tfjob"), *_CRON, "suspend"}
