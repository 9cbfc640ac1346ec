"""Where objects of a cluster contain secrets: each case is an object with marked secrets, and words
that must stay.

Every text that begins with `hunter2` is a secret, with everything after it up to the end of the
value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

SECRET = "hunter2"


class SecretCase(NamedTuple):
    """`kept`: words that the displayed YAML must still contain."""

    name: str
    object: Any
    kept: tuple[str, ...] = ()


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "bert:1", **fields}]}}


def words(*args: str) -> dict[str, Any]:
    return container(args=list(args))


def shell(script: str) -> dict[str, Any]:
    return container(command=["sh", "-c", script])


def secret_cases() -> Iterator[SecretCase]:
    yield from _maps()
    yield from _arguments()
    yield from _shells()
    yield from _texts()
    yield from _kinds()


def _maps() -> Iterator[SecretCase]:
    csi = {
        "driver": "ossplugin.csi.alibabacloud.com",
        "volumeAttributes": {"bucket": "data", "akId": "LTAI", "akSecret": SECRET},
    }
    yield SecretCase(
        "CSI attributes",
        {"spec": {"volumes": [{"name": "d", "csi": csi}]}},
        ("bucket: data", "akId: LTAI"),
    )
    flex = {
        "driver": "alicloud/oss",
        "options": {"akId": "LTAI", "akSecret": SECRET, "url": "oss-cn-beijing.aliyuncs.com"},
    }
    yield SecretCase(
        "flex options",
        {"spec": {"volumes": [{"flexVolume": flex}]}},
        ("oss-cn-beijing.aliyuncs.com",),
    )
    yield SecretCase(
        "environment",
        container(
            env=[{"name": "WANDB_API_KEY", "value": SECRET}, {"name": "MODEL", "value": "bert"}]
        ),
        ("bert",),
    )
    yield SecretCase(
        "environment in lower case", container(env=[{"name": "hf_token", "value": SECRET}])
    )
    yield SecretCase(
        "camel case",
        {"spec": {"accessKeySecret": SECRET, "dbPassword": SECRET, "apiKey": SECRET}},
    )
    yield SecretCase(
        "words without gaps",
        {
            "spec": {
                "APIKEY": SECRET,
                "HFTOKEN": SECRET,
                "mypassword": SECRET,
                "db_pwd": SECRET,
                "DB_PASS": SECRET,
            }
        },
    )
    yield SecretCase(
        "short names",
        {
            "secret": SECRET,
            "keys": SECRET,
            "x": {"token": SECRET, "auth": SECRET, "pass": SECRET, "sk": SECRET},
        },
    )
    yield SecretCase("a number", {"spec": {"password": 20261127}, "x": "20261128"}, ("20261128",))
    yield SecretCase(
        "a list below",
        {"spec": {"tokens": [SECRET, SECRET + " and more"], "queues": ["alpha"]}},
        ("alpha",),
    )
    yield SecretCase(
        "a map below",
        {"spec": {"credentials": {"user": "hunter2-user", "deep": [{"x": SECRET}]}}},
    )
    yield SecretCase(
        "header of a probe",
        container(
            livenessProbe={
                "httpGet": {"httpHeaders": [{"name": "Authorization", "value": f"Bearer {SECRET}"}]}
            }
        ),
    )
    yield SecretCase(
        "an embedded Secret",
        {"objects": [{"kind": "Secret", "stringData": {"a": SECRET}, "data": {"b": SECRET}}]},
    )
    yield SecretCase(
        "an embedded Secret, its kind behind",
        {"objects": [{"data": {"b": SECRET}, "kind": "Secret"}]},
    )
    yield SecretCase(
        "annotation",
        {"metadata": {"annotations": {"example.com/api-token": SECRET, "kept": "yes"}}},
        ("kept: yes",),
    )
    applied = json.dumps({"spec": {"env": [{"name": "HF_TOKEN", "value": SECRET}]}})
    yield SecretCase(
        "last applied",
        {
            "metadata": {
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}
            }
        },
    )
    other = {"metadata": {"annotations": {"banzaicloud.com/last-applied": applied}}}
    yield SecretCase("last applied of another tool", other, ("HF_TOKEN",))
    yield SecretCase(
        "managed fields", {"metadata": {"managedFields": [{"fieldsV1": {"value": SECRET}}]}}
    )
    yield SecretCase(
        "address as a key",
        {"spec": {"urls": {f"https://ann:{SECRET}@git.example/": "x"}}},
        ("git.example",),
    )
    yield SecretCase(
        "pairs of key and value",
        {"options": [{"key": "redis-password", "value": SECRET}]},
        ("key: redis-password",),
    )
    yield SecretCase(
        "all maps of a Secret",
        {
            "kind": "Secret",
            "data": {"a": SECRET},
            "stringData": {"b": SECRET},
            "binaryData": {"c": SECRET},
        },
    )


def _arguments() -> Iterator[SecretCase]:
    yield SecretCase(
        "flag and value", words("--api-key=hunter2", "--epochs=3"), ("--api-key=", "--epochs=3")
    )
    yield SecretCase(
        "flag, then value", words("--token", SECRET, "--epochs=3"), ("--token", "--epochs=3")
    )
    yield SecretCase("flag of one dash", words("-password", SECRET, "train"), ("train",))
    yield SecretCase("flag in capitals", words("--HF-TOKEN", SECRET))
    yield SecretCase(
        "words with gaps",
        words("--password=hunter2 is hunter2, really: hunter2", "next"),
        ("next",),
    )
    yield SecretCase(
        "name and value",
        words("env", "HF_TOKEN=hunter2 hunter2", "python"),
        ("HF_TOKEN=", "python"),
    )
    yield SecretCase(
        "name and value behind a flag",
        words(
            "--env=HF_TOKEN=hunter2",
            "-e",
            "DB_PASSWORD=hunter2;hunter2",
            "-Dredis.password=hunter2",
        ),
        ("DB_PASSWORD=",),
    )
    yield SecretCase(
        "two secret flags",
        words("--use-token", "--password", SECRET, "train"),
        ("--password", "train"),
    )
    yield SecretCase(
        "Hydra",
        words("trainer.wandb.api_key=hunter2", "+model.hf_token=hunter2", "lr=0.1"),
        ("lr=0.1",),
    )
    yield SecretCase(
        "Spark conf",
        words("--conf", "spark.hadoop.fs.oss.accessKeySecret=hunter2", "--name", "pi"),
        ("pi",),
    )
    yield SecretCase(
        "list in a word", words("--opt=user=ann,password=hunter2,ssl=1"), ("user=ann",)
    )
    yield SecretCase(
        "query of an address",
        words("http://h.example/x?token=hunter2&page=2"),
        ("http://h.example/x", "page=2"),
    )
    yield SecretCase(
        "address", words("https://ann:hunter2@git.example/repo.git"), ("git.example/repo.git",)
    )
    yield SecretCase(
        "address with a token alone",
        words("git", "clone", "https://hunter2@git.example/repo.git"),
        ("git.example/repo.git",),
    )
    yield SecretCase(
        "address whose password has special signs",
        words("redis://:hunter2@hunter2@r.example:6379/0", "https://ann:hunter2/hunter2@p.example"),
        ("6379/0",),
    )
    yield SecretCase(
        "user of curl",
        words("curl", "-u", "ann:hunter2", "--user=ann:hunter2", "http://h.example"),
        ("http://h.example",),
    )
    yield SecretCase(
        "header",
        words(
            "curl",
            "-H",
            "Authorization: Bearer hunter2",
            "--header=X-Api-Key: hunter2 hunter2",
            "u",
        ),
        ("Authorization:",),
    )
    yield SecretCase(
        "JSON in a word",
        words(('--config={"user": "ann", "password": "hunter2, hunter2"}'), "next"),
        ("next",),
    )
    yield SecretCase(
        "an escaped key", words('{"pass\\u0077ord": "hunter2", "user": "ann"}'), ("ann",)
    )


def _shells() -> Iterator[SecretCase]:
    yield SecretCase(
        "export",
        shell("export HF_TOKEN=hunter2; python train.py --lr 0.1"),
        ("export HF_TOKEN=", "python train.py --lr 0.1"),
    )
    yield SecretCase(
        "export in single quotes",
        shell("export DB_PASSWORD='hunter2 hunter2; hunter2' && run x"),
        ("&& run x",),
    )
    yield SecretCase(
        "export in double quotes",
        shell('export DB_PASSWORD="hunter2 \\"hunter2 hunter2" && run x'),
        ("&& run x",),
    )
    yield SecretCase(
        "quotes that are glued",
        shell("""export TOKEN=hunter2'hunter2 'hunter2"hunter2 x"hunter2\\ hunter2 && run x"""),
        ("&& run x",),
    )
    yield SecretCase(
        "before a command",
        shell("WANDB_API_KEY=hunter2 python train.py"),
        ("python train.py",),
    )
    yield SecretCase(
        "flag in a script",
        shell("run --password hunter2 x\nrun --api-key=hunter2 y"),
        ("run --password", " y"),
    )
    yield SecretCase(
        "flag on the next line",
        shell("run --password \\\n  hunter2 \\\n  --epochs 3"),
        ("--epochs 3",),
    )
    yield SecretCase(
        "quoted value of a flag",
        shell('run --password "hunter2 hunter2" --epochs 3'),
        ("--epochs 3",),
    )
    yield SecretCase(
        "quoted flag", shell("run '--password=hunter2 hunter2' --epochs 3"), ("--epochs 3",)
    )
    yield SecretCase(
        "shell in a shell",
        shell("""bash -c "export TOKEN='hunter2 hunter2'; run" && after"""),
        ("run", "after"),
    )
    yield SecretCase(
        "escaped quotes",
        shell('bash -c "export TOKEN=\\"hunter2 hunter2\\"; run" && after'),
        ("after",),
    )
    yield SecretCase(
        "curl",
        shell('curl -H "Authorization: Bearer hunter2" https://h.example'),
        ("https://h.example",),
    )
    yield SecretCase(
        "curl with a header of its own",
        shell("curl -H 'PRIVATE-TOKEN: hunter2' https://h.example"),
        ("https://h.example",),
    )
    yield SecretCase(
        "curl, data",
        shell("""curl -d '{"api_key": "hunter2", "model": "bert"}' https://h.example"""),
        ("bert", "https://h.example"),
    )
    yield SecretCase(
        "clone",
        shell("git clone https://ann:hunter2@git.example/x.git && make"),
        ("git.example/x.git", "make"),
    )
    yield SecretCase("words with a colon", shell("echo password: hunter2 hunter2\nmake"), ("make",))
    yield SecretCase(
        "a here document",
        shell("cat > c.yaml <<E\nuser: ann\npassword: hunter2, hunter2\nE\nmake"),
        ("user: ann", "make"),
    )
    yield SecretCase(
        "a block in a here document",
        shell("cat > c.yaml <<E\npassword: |\n  hunter2\n  hunter2\nuser: ann\nE\nmake"),
        ("user: ann", "make"),
    )
    yield SecretCase("a quote that never ends", shell("export TOKEN='hunter2 hunter2\nhunter2"))
    yield SecretCase(
        "an apostrophe before",
        shell('# don\'t\nexport TOKEN="hunter2 hunter2"\nmake'),
        ("make",),
    )
    yield SecretCase(
        "PowerShell",
        shell("$env:HF_TOKEN = 'hunter2 hunter2'; python train.py"),
        ("python train.py",),
    )
    yield SecretCase(
        "Python", shell("python -c 'login(token=\"hunter2 hunter2\", add=1)'"), ("add=1",)
    )
    yield SecretCase(
        "subshell", shell("run --token $(echo hunter2 hunter2) --epochs 3"), ("--epochs 3",)
    )
    yield SecretCase(
        "backticks",
        shell(f"export HF_TOKEN=`echo {SECRET}` && python train.py"),
        ("python train.py",),
    )
    yield SecretCase(
        "a call of a program",
        shell(f'python -c \'import os; os.environ.setdefault("HF_TOKEN", "{SECRET}")\''),
        ("setdefault",),
    )
    yield SecretCase(
        "an apostrophe in an address", {"x": f"https://ann:it's{SECRET}@host/a"}, ("@host/a",)
    )


def _texts() -> Iterator[SecretCase]:
    ray = "env_vars:\n  HF_TOKEN: hunter2\n  WANDB_PROJECT: bert\npip:\n- torch\n"
    yield SecretCase(
        "runtimeEnvYAML", {"spec": {"runtimeEnvYAML": ray}}, ("WANDB_PROJECT", "torch")
    )
    yield SecretCase(
        "YAML in flow form",
        {"spec": {"runtimeEnvYAML": "{env_vars: {HF_TOKEN: hunter2, A: 'b'}}"}},
        ("env_vars",),
    )
    block = "env_vars:\n  DB_PASSWORD: |\n    hunter2\n    hunter2\n  KEEP: this\n"
    yield SecretCase("YAML with a block", {"spec": {"runtimeEnvYAML": block}}, ("KEEP: this",))
    yield SecretCase(
        "YAML with a key twice",
        {"spec": {"x": "a:\n  token: hunter2\n  token: hunter2 x\n  keep: this\n"}},
        ("keep: this",),
    )
    yield SecretCase(
        "YAML of several documents",
        {"spec": {"x": "a: 1\n---\ntoken: >-\n  hunter2\n  hunter2\nkeep: this\n"}},
        ("keep: this",),
    )
    yield SecretCase(
        "YAML with a tag",
        {"spec": {"x": "!mine\ntoken: hunter2 hunter2\nkeep: this\n"}},
        ("keep: this",),
    )
    yield SecretCase(
        "YAML with a comment", {"spec": {"x": "a: b\n# token: hunter2 hunter2\n"}}, ("a: b",)
    )
    yield SecretCase(
        "YAML, an escaped key",
        {"spec": {"x": ('"\\x74oken": hunter2\nkeep: this\n')}},
        ("keep: this",),
    )
    yield SecretCase(
        "YAML, a key with a question mark",
        {"spec": {"x": "? token\n: hunter2\nkeep: this\n"}},
        ("keep: this",),
    )
    kept = container(
        env=[{"name": "SPARK_CONF", "value": json.dumps({"fs.s3a.secret.key": SECRET, "n": 7})}]
    )
    yield SecretCase("JSON in a variable", kept, ("n", "7"))
    twice = json.dumps({"inner": json.dumps({"token": SECRET, "n": "seven"})})
    yield SecretCase("JSON in JSON", {"metadata": {"annotations": {"config": twice}}}, ("seven",))
    yield SecretCase(
        "a key file",
        {
            "data": {
                "x": (
                    "a\n-----BEGIN RSA PRIVATE KEY-----\nhunter2\nhunter2\n-----END RSA PRIVATE "
                    "KEY-----\nb"
                )
            }
        },
    )
    yield SecretCase(
        "a key file that is cut",
        {"data": {"x": "a\n-----BEGIN PRIVATE KEY-----\nhunter2\nhunter2"}},
    )
    yield SecretCase(
        "properties",
        {"data": {"x": "db.user=ann\ndb.password = hunter2 hunter2\nport=1\n"}},
        ("db.user=ann", "port=1"),
    )
    url = "postgres://ann:hunter2@db.example:5432/x"
    yield SecretCase(
        "an address in a variable",
        container(env=[{"name": "DATABASE", "value": url}]),
        ("db.example:5432/x",),
    )
    yield SecretCase(
        "a status",
        {"status": {"message": f"cannot clone https://ann:{SECRET}@git.example/x"}},
        ("git.example/x",),
    )
    yield SecretCase(
        "options of Java",
        container(env=[{"name": "JAVA_OPTS", "value": "-Xmx4g -Dkeystore.password=hunter2 -Da=b"}]),
        ("-Xmx4g", "-Da=b"),
    )
    yield SecretCase(
        "a text that is too long to judge",
        {"spec": {"x": "a b" * 100_000 + " token=hunter2"}},
    )


def _kinds() -> Iterator[SecretCase]:
    head = {"rayStartParams": {"redis-password": SECRET, "num-gpus": "1"}}
    entry = "python train.py --wandb-key hunter2 --lr 0.1"
    yield SecretCase(
        "RayJob",
        {"spec": {"entrypoint": entry, "rayClusterSpec": {"headGroupSpec": head}}},
        ("num-gpus", "--lr 0.1"),
    )
    spark = {
        "kind": "SparkApplication",
        "spec": {
            "sparkConf": {
                "spark.kubernetes.authenticate.driver.oauthToken": SECRET,
                "spark.ui.port": "4040",
            },
            "hadoopConf": {"fs.oss.accessKeySecret": SECRET, "fs.s3a.secret.key": SECRET},
            "arguments": ["--password", SECRET, "100"],
            "driver": {
                "env": [{"name": "MY_TOKEN", "value": SECRET}],
                "envVars": {"DB_PASSWORD": SECRET, "MODE": "fast"},
                "envSecretKeyRefs": {"DB_PASSWORD": {"name": "db-login", "key": "pw"}},
                "secrets": [{"name": "gcp", "path": "/mnt/gcp", "secretType": "GCPServiceAccount"}],
                "javaOptions": "-Dx.secret=hunter2 -XX:+UseG1GC",
            },
            "executor": {"envVars": {"API_TOKEN": SECRET}, "javaOptions": f"-Dtoken={SECRET}"},
        },
    }
    yield SecretCase(
        "SparkApplication",
        spark,
        ("4040", "fast", "db-login", "GCPServiceAccount", "UseG1GC", "100"),
    )


HARMLESS: dict[str, Any] = {
    "references": {
        "spec": {
            "imagePullSecrets": [{"name": "regcred"}],
            "automountServiceAccountToken": True,
            "containers": [
                {
                    "env": [
                        {
                            "name": "HF_TOKEN",
                            "valueFrom": {
                                "secretKeyRef": {"name": "hf", "key": "token", "optional": True}
                            },
                        }
                    ],
                    "envFrom": [{"secretRef": {"name": "all"}}],
                }
            ],
            "volumes": [
                {
                    "secret": {
                        "secretName": "tls",
                        "items": [{"key": "tls.key", "path": "key.pem"}],
                        "defaultMode": 256,
                    }
                },
                {
                    "projected": {
                        "sources": [
                            {
                                "serviceAccountToken": {
                                    "path": "t",
                                    "expirationSeconds": 3600,
                                    "audience": "a",
                                }
                            }
                        ]
                    }
                },
                {
                    "csi": {
                        "nodePublishSecretRef": {"name": "oss"},
                        "volumeAttributes": {"secretProviderClass": "vault"},
                    }
                },
            ],
        }
    },
    "selectors": {
        "affinity": {
            "matchExpressions": [{"key": "nvidia.com/gpu", "operator": "In", "values": ["a"]}],
            "topologyKey": "zone",
        },
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes"}],
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "matchLabelKeys": ["pod-template-hash"]}
        ],
    },
    "words of models": {
        "args": [
            "--max-tokens",
            "512",
            "--tokenizer=bert",
            "--max-num-batched-tokens=8192",
            "--tokenizer-mode",
            "auto",
        ]
    },
    "variables": {
        "env": [
            {"name": "TOKENIZERS_PARALLELISM", "value": "false"},
            {"name": "PWD", "value": "/work"},
        ]
    },
    "prose": {
        "message": (
            "the job's pods don't fit: 3 nodes have 0 of 8 GPUs; see https://docs.example/a?b=c#d, "
            "mail ann@example.com"
        )
    },
    "a script": {
        "command": [
            "sh",
            "-c",
            (
                "set -e; cd /work && for i in 1 2; do python train.py --lr=0.1 \"$i\" 'x y' | "
                "tee log; "
                "done"
            ),
        ]
    },
    "addresses": {
        "urls": [
            "ssh://git@git.example/x",
            "abfss://box@account.dfs.example/x",
            "http://a.example:8080/b@c",
            "docker.io/a/b@sha256:ab",
        ]
    },
}
