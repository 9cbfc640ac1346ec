"""Cases of objects that break the rules of their kind: names, labels, specs, and changes of
immutable fields.
"""

from __future__ import annotations

from typing import Any

from tests.contracts.api_client import MERGE, STRATEGIC
from tests.contracts.bad_input import (
    A_DEPLOYMENT,
    A_JOB,
    BUDGETS,
    CLAIMS,
    CLASSES,
    CRON_JOBS,
    DEPLOYMENTS,
    JOBS,
    MAPS,
    PODS,
    SECRETS,
    SERVICES,
    Bad,
    named,
)
from tests.contracts.objects import Object, config_map, deployment, job, pod


def _container(**more: Any) -> Object:
    return {"containers": [{"name": "main", "image": "x", **more}]}


_TEMPLATE = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
}


def _with_spec(obj: Object, spec: Object) -> Object:
    return {**obj, "spec": {**obj["spec"], **spec}}


_NAMES = ("A", "a_b", "-a", "a-", "a.b", "a..b", "a" * 253, "a" * 254, "a b", "1", "a:b", "中")
_LABELS: tuple[Object, ...] = (
    *(
        {"": "a"},
        {"a/b/c": "x"},
        {"/a": "x"},
        {"A.b/c": "x"},
        {"a b/c": "x"},
        {"a.b/": "x"},
        {"x" * 64: "a"},
        {"x" * 254 + "/a": "b"},
    ),
    *({"a": text} for text in ("-", "b c", "x" * 64, "", ".", "é")),
)
_ANNOTATIONS: tuple[Object, ...] = (
    {"": "a"},
    {"a/b/c": "x"},
    {"A.b/c": "x"},
    {"a b": "x"},
    {"x" * 64: "y"},
    {"a": "x" * 262144},
    {"a": "x y"},
)
_METADATA: dict[str, Object] = {
    "a finalizer with a space": {"finalizers": ["a b"]},
    "a finalizer without a domain": {"finalizers": ["plain"]},
    "an owner without uid": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
    "an owner without kind": {"ownerReferences": [{"apiVersion": "v1", "name": "x", "uid": "u"}]},
    "an owner that is an event": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "x"}]
    },
    "~two controllers": {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": x, "uid": x, "controller": True}
            for x in "ab"
        ]
    },
    "a uid of one's own": {"uid": "abc"},
}
_MAPS: dict[str, Object] = {
    "a key with a space": config_map(data={"a b": "x"}),
    "a key of two dots": config_map(data={"..": "x"}),
    "a key that is too long": config_map(data={"a" * 254: "x"}),
    "a key twice": {**config_map(data={"a": "x"}), "binaryData": {"a": "eA=="}},
}
_SECRETS: dict[str, Object] = {
    "TLS without its keys": {"type": "kubernetes.io/tls", "data": {}},
    "docker's without its key": {"type": "kubernetes.io/dockerconfigjson", "data": {}},
    "a token without an account": {"type": "kubernetes.io/service-account-token", "data": {}},
    "a key with a space": {"data": {"a b": "eA=="}},
    "a number for a text": {"stringData": {"a": 1}},
}
_BUDGETS: dict[str, Object] = {
    "~both numbers": {"minAvailable": 1, "maxUnavailable": 1},
    "a negative number": {"minAvailable": -1},
    "a text": {"minAvailable": "x"},
}
_CLASSES: dict[str, Object] = {
    "a system name": {"metadata": {"name": "system-foo"}, "value": 5},
    "too high": {"metadata": {"name": "bad-class"}, "value": 2000000000},
    "an unknown policy": {
        "metadata": {"name": "bad-class"},
        "value": 5,
        "preemptionPolicy": "Nope",
    },
}
_TAINTS: dict[str, list[Object]] = {
    "an unknown effect": [{"key": "a", "effect": "Nope"}],
    "~the same taint twice": [
        {"key": "a", "effect": "NoSchedule"},
        {"key": "a", "effect": "NoSchedule"},
    ],
}
_EVENTS: dict[str, Object] = {
    "of nothing": {},
    "of another namespace": {"involvedObject": {"kind": "Pod", "namespace": "zz"}},
}
_PODS = {
    "no containers": {"containers": []},
    "null containers": {"containers": None},
    "policy": {"restartPolicy": "Sometimes"},
    "dns": {"dnsPolicy": "Nope"},
    "dns none": {"dnsPolicy": "None"},
    "dns none, empty config": {"dnsPolicy": "None", "dnsConfig": {}},
    "dns none, no servers": {"dnsPolicy": "None", "dnsConfig": {"searches": ["a.b"]}},
    "dns server": {"dnsConfig": {"nameservers": ["here"]}},
    "dns servers": {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}},
    "dns search": {"dnsConfig": {"searches": ["A!"]}},
    "dns searches": {"dnsConfig": {"searches": [f"{number}.b" for number in range(33)]}},
    "dns search dot": {
        "dnsConfig": {"searches": [".", "a_b.c."], "options": [{"name": "ndots", "value": "2"}]}
    },
    "dns option": {"dnsConfig": {"options": [{"value": "2"}]}},
    "dns of all": {
        "dnsPolicy": "None",
        "restartPolicy": "Sometimes",
        "tolerations": [{"operator": "Equal"}],
    },
    "grace": {"terminationGracePeriodSeconds": -1},
    "deadline 0": {"activeDeadlineSeconds": 0},
    "pull": _container(imagePullPolicy="Nope"),
    "image space": {"containers": [{"name": "main", "image": " x"}]},
    "port 0": _container(ports=[{"containerPort": 0}]),
    "port big": _container(ports=[{"containerPort": 70000}]),
    "port proto": _container(ports=[{"containerPort": 80, "protocol": "FOO"}]),
    "port name": _container(ports=[{"containerPort": 80, "name": "A_b"}]),
    "port dup name": _container(
        ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]
    ),
    "env no name": _container(env=[{"value": "x"}]),
    "env bad name": _container(env=[{"name": "a=b", "value": "x"}]),
    "env both": _container(
        env=[{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "mount absent": _container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
    "mount no path": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "x", "volumeMounts": [{"name": "v"}]}],
    },
    "volume dup": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
    "volume none": {"volumes": [{"name": "v"}]},
    "volume two": {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
    "volume name": {"volumes": [{"name": "V_", "emptyDir": {}}]},
    "volume no name": {"volumes": [{"emptyDir": {}}]},
    "claim no name": {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
    "toleration op": {"tolerations": [{"key": "a", "operator": "Nope"}]},
    "toleration exists value": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
    "toleration no key": {"tolerations": [{"operator": "Equal", "value": "b"}]},
    "toleration effect": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "Nope"}]},
    "toleration seconds": {
        "tolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}
        ]
    },
    "nodeSelector": {"nodeSelector": {"a b": "c"}},
    "nodeName": {"nodeName": "A_"},
    "hostname": {"hostname": "A_"},
    "subdomain": {"subdomain": "A_"},
    "gates bad": {"schedulingGates": [{"name": "a b"}]},
    "gates dup": {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
    "gates node": {"schedulingGates": [{"name": "a"}], "nodeName": "x"},
    "priorityClass": {"priorityClassName": "nope"},
    "priority": {"priority": 7},
    "sa": {"serviceAccountName": "nope"},
    "sa bad": {"serviceAccountName": "A_"},
    "affinity op": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Nope"}]}]
                }
            }
        }
    },
    "affinity none": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
            }
        }
    },
    "affinity in empty": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                }
            }
        }
    },
    "~podaffinity topo": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]
            }
        }
    },
    "~spread": {
        "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "x"}]
    },
    "probe none": _container(livenessProbe={"periodSeconds": 1}),
    "probe two": _container(
        livenessProbe={"exec": {"command": ["x"]}, "httpGet": {"path": "/", "port": 80}}
    ),
    "probe three": _container(
        readinessProbe={"tcpSocket": {"port": 80}, "grpc": {"port": 80}, "exec": {"command": ["x"]}}
    ),
    "probe command": _container(livenessProbe={"exec": {}}),
    "probe path": _container(livenessProbe={"httpGet": {"port": 80}}),
    "probe port": _container(startupProbe={"tcpSocket": {"port": 0}}),
    "probe port name": _container(livenessProbe={"httpGet": {"path": "/", "port": "A_b"}}),
    "probe no port": _container(livenessProbe={"httpGet": {"path": "/"}}),
    "probe scheme": _container(
        livenessProbe={"httpGet": {"path": "/", "port": 80, "scheme": "FTP"}}
    ),
    "probe header": _container(
        livenessProbe={
            "httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "a b", "value": "x"}]}
        }
    ),
    "probe grpc port": _container(livenessProbe={"grpc": {"port": 70000}}),
    "probe success": _container(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 2}),
    "probe startup success": _container(
        startupProbe={"exec": {"command": ["x"]}, "successThreshold": 2}
    ),
    "probe grace": _container(
        livenessProbe={"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 0}
    ),
    "probe readiness grace": _container(
        readinessProbe={"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 5}
    ),
    "probe of all": _container(
        livenessProbe={"periodSeconds": 1},
        imagePullPolicy="Nope",
        securityContext={"runAsUser": -1},
    ),
    "lifecycle two": _container(
        lifecycle={"preStop": {"exec": {"command": ["x"]}, "httpGet": {"port": 80}}}
    ),
    "lifecycle sleep": _container(lifecycle={"preStop": {"sleep": {"seconds": -1}}}),
    "user": {"securityContext": {"runAsUser": -1}},
    "user too high": {"securityContext": {"runAsUser": 2147483648}},
    "group": {"securityContext": {"runAsGroup": -1}},
    "fs group": {"securityContext": {"fsGroup": -1, "runAsUser": -2}},
    "more groups": {"securityContext": {"supplementalGroups": [5, -1]}},
    "container user": _container(securityContext={"runAsUser": -1}),
    "container group": _container(securityContext={"runAsGroup": -1}),
    "image word": {"containers": [{"name": "main", "image": "bad image"}]},
    "image upper": {"containers": [{"name": "main", "image": "A/B:c@d"}]},
    "image tab": {"containers": [{"name": "main", "image": "x\t"}]},
    "image blank": {"containers": [{"name": "main", "image": " "}]},
    "image empty": {"containers": [{"name": "main", "image": ""}]},
    "init probe": {
        "initContainers": [
            {"name": "i", "image": "x", "livenessProbe": {"exec": {"command": ["x"]}}}
        ]
    },
    "sa twice": {"serviceAccountName": "nope", "serviceAccount": "other"},
    "sa of old": {"serviceAccount": "nope"},
    "probe neg": _container(livenessProbe={"exec": {"command": ["x"]}, "periodSeconds": -1}),
    "limit lt request": _container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    "neg cpu": _container(resources={"limits": {"cpu": "-1"}}),
    "gpu frac": _container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
    "gpu request only": _container(resources={"requests": {"nvidia.com/gpu": "1"}}),
    "res name": _container(resources={"limits": {"a b": "1"}}),
    "pod res extended": {"resources": {"limits": {"aliyun.com/gpu-mem": "4"}}},
    "pod res extended twice": {
        "resources": {
            "limits": {"nvidia.com/gpu": "1"},
            "requests": {"nvidia.com/gpu": "1", "cpu": "1"},
        }
    },
    "pod res plain": {"resources": {"limits": {"foo": "1"}}},
    "pod res storage": {"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
    "pod res order": {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
    "res plain": _container(resources={"limits": {"foo": "1"}}),
    "init restart": {"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Never"}]},
    "container restart": _container(restartPolicy="Sometimes"),
    "init dup": {"initContainers": [{"name": "main", "image": "x"}]},
    "ephemeral": {"ephemeralContainers": [{"name": "x", "image": "y"}]},
    "os": {"os": {"name": "bsd"}},
    "~pullsecret": {"imagePullSecrets": [{}]},
    "dev": _container(volumeDevices=[{"name": "x", "devicePath": "/x"}]),
    "termination": _container(terminationMessagePolicy="Nope"),
    "command num": _container(command=[1]),
    "lifecycle": _container(lifecycle={"preStop": {}}),
    "preemption": {"preemptionPolicy": "Nope"},
    "scheduler": {"schedulerName": ""},
    "share+": {"shareProcessNamespace": True, "hostPID": True},
}
_DEPLOYMENTS = {
    "replicas neg": {"replicas": -1},
    "replicas text": {"replicas": "2"},
    "selector none": {"selector": None},
    "selector empty": {"selector": {}},
    "selector expr": {"selector": {"matchExpressions": [{"key": "app", "operator": "Nope"}]}},
    "selector mismatch": {"selector": {"matchLabels": {"app": "z"}}},
    "~strategy": {"strategy": {"type": "Nope"}},
    "strategy recreate+": {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
    "surge 0 0": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
    "surge text": {"strategy": {"rollingUpdate": {"maxSurge": "x%"}}},
    "surge 200": {"strategy": {"rollingUpdate": {"maxUnavailable": "200%"}}},
    "history": {"revisionHistoryLimit": -1},
    "deadline": {"progressDeadlineSeconds": 0},
    "deadline lt min": {"minReadySeconds": 700},
    "minready": {"minReadySeconds": -1},
    "no template": {"template": None},
    "template policy": {
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]},
        }
    },
    "template no containers": {
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    },
    "template label": {
        "template": {
            "metadata": {"labels": {"app": "web", "a b": "c"}},
            "spec": {"containers": [{"name": "m", "image": "x"}]},
        }
    },
    "template deadline": {
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"activeDeadlineSeconds": 5, "containers": [{"name": "m", "image": "x"}]},
        }
    },
}
_JOBS = {
    "parallel neg": {"parallelism": -1},
    "completions neg": {"completions": -1},
    "backoff neg": {"backoffLimit": -1},
    "deadline neg": {"activeDeadlineSeconds": -1},
    "ttl neg": {"ttlSecondsAfterFinished": -1},
    "mode": {"completionMode": "Nope"},
    "indexed": {"completionMode": "Indexed"},
    "~indexed big": {"completionMode": "Indexed", "completions": 1000000, "parallelism": 1000000},
    "always": {
        "template": {
            "spec": {"restartPolicy": "Always", "containers": [{"name": "m", "image": "x"}]}
        }
    },
    "replacement": {"podReplacementPolicy": "Nope"},
}
_CRON_JOBS = {
    "schedule": {"schedule": "nope"},
    "schedule empty": {"schedule": ""},
    "tz": {"timeZone": "Mars/One"},
    "tz in schedule": {"schedule": "TZ=UTC * * * * *"},
    "tz alone in schedule": {"schedule": "TZ=0"},
    "unknown tz in schedule": {"schedule": "CRON_TZ=Mars/One * * * * *"},
    "tz empty": {"timeZone": ""},
    "tz local": {"timeZone": "Local"},
    "tz path": {"timeZone": "../etc"},
    "schedule of Sunday as 7": {"schedule": "0 0 * * 7"},
    "schedule of six fields": {"schedule": "0 0 22 * * ?"},
    "schedule with a step of 0": {"schedule": "*/0 * * * *"},
    "schedule of an unknown word": {"schedule": "@reboot"},
    "schedule every day in days": {"schedule": "@every 1d"},
    "schedule every number": {"schedule": "@every 5"},
    "schedule that is taken: every": {"schedule": "@every 1h30m"},
    "schedule that is taken: a word": {"schedule": "@midnight"},
    "schedule that is taken: names": {"schedule": "*/5 8-18/2 ? jan,JUL MON-fri"},
    "schedule that is taken: never": {"schedule": "0 0 31 2 *", "timeZone": "Asia/Shanghai"},
    "policy": {"concurrencyPolicy": "Nope"},
    "history": {"successfulJobsHistoryLimit": -1},
    "start": {"startingDeadlineSeconds": -1},
}
_SERVICES = {
    "no ports": {},
    "port 0": {"ports": [{"port": 0}]},
    "two no names": {"ports": [{"port": 80}, {"port": 81}]},
    "dup names": {"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 81}]},
    "~dup ports": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]},
    "type": {"type": "Nope", "ports": [{"port": 80}]},
    "ip": {"clusterIP": "1.2.3", "ports": [{"port": 80}]},
    "external none": {"type": "ExternalName"},
    "selector": {"selector": {"a b": "c"}, "ports": [{"port": 80}]},
    "affinity": {"sessionAffinity": "Nope", "ports": [{"port": 80}]},
    "nodeport": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30000}]},
    "target": {"ports": [{"port": 80, "targetPort": "A_b"}]},
    "proto": {"ports": [{"port": 80, "protocol": "X"}]},
}
_CLAIMS = {
    "none": {},
    "no modes": {"resources": {"requests": {"storage": "1Gi"}}},
    "mode": {"accessModes": ["Nope"], "resources": {"requests": {"storage": "1Gi"}}},
    "zero": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0"}}},
    "no size": {"accessModes": ["ReadWriteOnce"]},
}

_SECRET = (SECRETS, {"metadata": {"name": "a"}, "data": {"a": "eA=="}})
_CLAIM = (
    CLAIMS,
    {
        "metadata": {"name": "a"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
)
_SERVICE = (SERVICES, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
_FROZEN_MAP = (MAPS, {**config_map(data={"a": "x"}), "immutable": True})
_CHANGES: dict[str, tuple[tuple[str, Object], Object]] = {
    "the type of a Secret": (_SECRET, {"type": "other"}),
    "data that is immutable": (_FROZEN_MAP, {"data": {"a": "y"}}),
    "that data is immutable": (_FROZEN_MAP, {"immutable": False}),
    "the address of a Service": (_SERVICE, {"spec": {"clusterIP": "10.96.3.3"}}),
    "~the mode of a claim": (_CLAIM, {"spec": {"accessModes": ["ReadOnlyMany"]}}),
    "the completions of a Job": (A_JOB, {"spec": {"completions": 5}}),
    "~the selector of a Job": (A_JOB, {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
}
_SELECTOR = {"selector": {"matchLabels": {"app": "z"}}}
_GENERATED = {**pod(spec={"serviceAccountName": "nope"}), "metadata": {"generateName": "web-5f-"}}
_RUNNING_JOB = _with_spec(job(suspend=False), {"managedBy": "example.com/nobody"})


def _made(prefix: str, path: str, base: Object) -> Any:
    return lambda name, spec: Bad(f"{prefix}: {name}", "POST", path, _with_spec(base, spec))


CASES = (
    *(
        Bad(f"name of a ConfigMap: {name[:12]} {len(name)}", "POST", MAPS, config_map(name))
        for name in (*_NAMES, "a/b", ".", "..", "a%")
    ),
    *(
        Bad(
            f"name of a Service: {name[:12]} {len(name)}",
            "POST",
            SERVICES,
            {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}},
        )
        for name in _NAMES
    ),
    *(
        Bad(
            f"name of a namespace: {name}",
            "POST",
            "/api/v1/namespaces",
            {"metadata": {"name": name}},
        )
        for name in ("A_b", "a.b")
    ),
    Bad("name of a node", "POST", "/api/v1/nodes", {"metadata": {"name": "A_b"}}),
    Bad(
        "name of a Role",
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{s}/roles",
        {"metadata": {"name": "a/b"}, "rules": []},
    ),
    Bad("name: none", "POST", MAPS, {"metadata": {}}),
    Bad("name: none of a namespace", "POST", "/api/v1/namespaces", {"metadata": {}}),
    Bad(
        "name: none of a cron job",
        "POST",
        CRON_JOBS,
        {"metadata": {}, "spec": {"schedule": "@daily", "jobTemplate": job()["spec"]}},
        is_worded=False,
    ),
    Bad(
        "name: none of a definition",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {}},
        is_worded=False,
    ),
    Bad("number: a version beyond all", "GET", MAPS, query={"resourceVersion": "9" * 25}),
    Bad("number: a version with a sign", "GET", MAPS, query={"resourceVersion": "+5"}),
    Bad("number: a limit with two signs", "GET", MAPS, query={"limit": "--5"}),
    Bad("number: a limit beyond all", "GET", MAPS, query={"limit": "9" * 25}),
    Bad("number: a limit with a sign", "GET", MAPS, query={"limit": "+5"}),
    Bad("number: a limit of other digits", "GET", MAPS, query={"limit": "²"}),
    Bad(
        "name: none of a priority class",
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {}, "value": 1},
    ),
    Bad(
        "name: a bad beginning",
        "POST",
        MAPS,
        {"metadata": {"generateName": "A_"}},
        is_worded=False,
    ),
    *(Bad(f"label: {labels}"[:60], "POST", MAPS, config_map(labels=labels)) for labels in _LABELS),
    *(
        Bad((f"annotation: {given}")[:60], "POST", MAPS, config_map(annotations=given))
        for given in _ANNOTATIONS
    ),
    *named(
        lambda name, metadata: Bad(f"metadata: {name}", "POST", MAPS, config_map(**metadata)),
        _METADATA,
    ),
    *named(_made("pod", PODS, pod()), _PODS),
    Bad("pod: an absent account, of a generated name", "POST", PODS, _GENERATED),
    *named(_made("deployment", DEPLOYMENTS, deployment()), _DEPLOYMENTS),
    Bad("deployment: no spec", "POST", DEPLOYMENTS, {"metadata": {"name": "web"}}),
    *named(_made("job", JOBS, job()), _JOBS),
    *named(
        _made(
            "cron job",
            CRON_JOBS,
            {
                "metadata": {"name": "x"},
                "spec": {
                    "schedule": "* * * * *",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": _TEMPLATE}},
                },
            },
        ),
        _CRON_JOBS,
    ),
    *named(_made("service", SERVICES, {"metadata": {"name": "s"}, "spec": {}}), _SERVICES),
    *named(_made("claim", CLAIMS, {"metadata": {"name": "v"}, "spec": {}}), _CLAIMS),
    *named(lambda name, body: Bad(f"ConfigMap: {name}", "POST", MAPS, body), _MAPS),
    *named(
        lambda name, body: Bad(
            f"Secret: {name}", "POST", SECRETS, {"metadata": {"name": "t"}, **body}
        ),
        _SECRETS,
    ),
    *named(_made("budget", BUDGETS, {"metadata": {"name": "t"}, "spec": {}}), _BUDGETS),
    *named(lambda name, body: Bad(f"priority class: {name}", "POST", CLASSES, body), _CLASSES),
    *named(
        lambda name, taints: Bad(
            f"node: {name}",
            "POST",
            "/api/v1/nodes",
            {"metadata": {"name": "zz"}, "spec": {"taints": taints}},
        ),
        _TAINTS,
    ),
    *named(
        lambda name, body: Bad(
            f"event: {name}",
            "POST",
            "/api/v1/namespaces/{s}/events",
            {"metadata": {"name": "e"}, **body},
        ),
        _EVENTS,
    ),
    *named(
        lambda name, case: Bad(
            f"change: {name}", "PATCH", f"{case[0][0]}/a", case[1], media=MERGE, there=case[0]
        ),
        _CHANGES,
    ),
    Bad(
        "change: the selector of a Deployment",
        "PATCH",
        f"{DEPLOYMENTS}/web",
        {"spec": _SELECTOR},
        media=MERGE,
        there=A_DEPLOYMENT,
    ),
    Bad(
        *("change: the template of a running Job", "PATCH", f"{JOBS}/a"),
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "z"}]}}}},
        media=STRATEGIC,
        there=(JOBS, _RUNNING_JOB),
        is_worded=False,
    ),
)
