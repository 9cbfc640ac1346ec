"""Random valid command lines of `serve`: every flag, alone and with others, with any text as a
value where text is allowed.
"""

from __future__ import annotations

from hypothesis import strategies as st
from tests.properties.flag_sets import (
    ANY_TEXT,
    CORES,
    COUNT,
    CPU,
    LABEL,
    NAME,
    PATH,
    SIZE,
    UNITS,
    Words,
    meetable,
)

_COMMON = {
    "replicas": st.integers(0, 2).map(str),
    "gpus": COUNT,
    "gpumemory": UNITS,
    "gpucore": CORES,
    "cpu": CPU,
    "memory": SIZE,
    "share-memory": SIZE,
    "image-pull-policy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
    "image-pull-secret": NAME,
    "device": st.sampled_from(["amd.com/gpu=1", "a.b/c=3"]),
    "shell": st.sampled_from(["sh", "bash"]),
    "env": st.tuples(st.sampled_from(["A", "B_1", "ARENA_POD_IP"]), ANY_TEXT).map("=".join),
    "env-from-secret": NAME.map(lambda name: f"S={name}:k"),
    "annotation": st.tuples(NAME, ANY_TEXT).map("=".join),
    "label": st.tuples(NAME, LABEL).map("=".join),
    "selector": st.tuples(NAME, LABEL).map("=".join),
    "toleration": st.sampled_from(["all", "a=b:NoSchedule,Equal", "c:NoExecute", "d"]),
    "data": st.tuples(NAME, PATH).map(lambda pair: f"c-{pair[0]}:/data{pair[1]}"),
    "data-dir": PATH.map(lambda path: f"{path}:/host{path}"),
    "temp-dir": st.tuples(NAME, PATH).map(lambda pair: f"t-{pair[0]}:/temp{pair[1]}"),
    "config-file": PATH.map(lambda path: f"/etc/hostname:/conf{path}"),
    "model-version": LABEL,
}
_PROBE = [
    "--readiness-probe-action",
    "httpGet",
    "--readiness-probe-action-option",
    "port: 80",
    "--readiness-probe-option",
    "periodSeconds: 9",
]
_OWN = {
    "custom": {
        "max-surge": st.sampled_from(["1", "25%"]),
        "metrics-port": st.just("9100"),
        "model-name": NAME,
    },
    "tensorflow": {"model-config-file": PATH, "monitoring-config-file": PATH},
    "triton": {
        "load-model": NAME,
        "http-port": st.just("80"),
        "extend-command": st.just("--log-verbose=1"),
        "model-name": NAME,
    },
    "kserve": {
        "max-replicas": st.integers(1, 9).map(str),
        "timeout": COUNT,
        "scale-metric": st.sampled_from(["cpu", "rps"]),
        "runtime": NAME,
        "canary-traffic-percent": st.integers(-1, 100).map(str),
        "security-context": st.just("runAsUser=7"),
        "affinity-policy": st.sampled_from(["none", "spread", "binpack"]),
        "model-name": NAME,
    },
}
_NEEDED = {
    "custom": ["--image", "i", "--port", "7000"],
    "tensorflow": ["--model-name", "mnist", "--model-path", "/m"],
    "triton": ["--model-repository", "/m"],
    "kserve": ["--model-format", "sklearn", "--min-replicas", "1"],
}


def drawn_serving_flags(type_: str) -> set[str]:
    """The flags that `serving_flag_sets` draws for this type, without dashes."""
    words = [*_NEEDED[type_], *(_PROBE if type_ == "custom" else ())]
    spelled = {word.removeprefix("--") for word in words if word.startswith("--")}
    return {*_COMMON, *_OWN[type_], *spelled, "version", "enable-istio", "expose-service"}


@st.composite
def serving_flag_sets(draw: st.DrawFn, types: tuple[str, ...] = tuple(_OWN)) -> Words:
    """The words after `arena serve`."""
    type_ = draw(st.sampled_from(types))
    flags = {**_COMMON, **_OWN[type_]}
    chosen = draw(st.lists(st.sampled_from(sorted(flags)), unique=True, max_size=8))
    words = [f"--{flag}={draw(flags[flag])}" for flag in meetable(chosen)]
    words += [
        f"--{truth}"
        for truth in draw(
            st.lists(st.sampled_from(["enable-istio", "expose-service"]), unique=True)
        )
    ]
    words += _PROBE if type_ == "custom" and draw(st.booleans()) else []
    name, version = draw(NAME), draw(st.sampled_from(["v1", "202601051030", "0"]))
    return [
        type_,
        f"--name={name}",
        f"--version={version}",
        *_NEEDED[type_],
        *words,
        *draw(st.sampled_from([[], ["--command", "run: me"]])),
    ]
