"""The same numbers as in `truth`, read from the console's answers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import cached_property
from typing import Any

from tests.kube.numbers.truth import Numbers
from tests.kube.servers import Server

STATES = (
    "free",
    "allocated",
    "shared",
    "unhealthy",
    "draining",
    "unknown",
    "closed",
    "unreachable",
)
"""The states in the map's numbering."""


def moment(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()


class Shown:
    """One look at the console; each address is requested once."""

    def __init__(self, console: Server) -> None:
        self._console = console

    def _items(self, path: str, **parameters: str) -> list[Any]:
        answer = self._console.api(path, size="500", **parameters)
        assert answer["total"] == len(answer["items"])
        items: list[Any] = answer["items"]
        return items

    @cached_property
    def _overview(self) -> Any:
        return self._console.api("/overview")

    def nodes(self) -> Numbers:
        names = [
            "status",
            "schedulable",
            "ip",
            "gpuMode",
            "gpuModel",
            "gpusTotal",
            "gpusAllocated",
            "gpusUnhealthy",
            "gpusReporting",
        ]
        names += [
            "gpuMemoryTotalMiB",
            "gpuMemoryAllocatedMiB",
            "gpuMemoryUsedMiB",
            "gpuMemoryUsedOfMiB",
            "gpuUtilPercent",
        ]
        return {
            f"{row['name']} {name}": row[name] for row in self._items("/nodes") for name in names
        }

    def cards(self) -> Numbers:
        """Also checks that the map's cells and the list's rows agree about each card."""
        rows = self._items("/gpus")
        heat = {
            f"{line['labels']['node']}/{index}": value
            for line in self._console.api("/charts/gpu-heatmap")["series"]
            for index, value in line["points"]
        }
        states = Counter(f"{row['node']} {row['state']}" for row in rows)
        cells = Counter(
            f"{node[0]} {STATES[cell[0]]}"
            for node in self._console.api("/gpus/map")["nodes"]
            for cell in node[4]
        )
        assert cells == states, "the map and the list differ"
        found: Numbers = dict(states)
        for row in rows:
            if row["uuid"]:
                name = f"{row['node']}/{row['index']}"
                found |= {
                    f"{name} util": row["utilPercent"],
                    f"{name} used": row["memoryUsedMiB"],
                    f"{name} total": row["memoryTotalMiB"],
                }
                found |= {
                    f"{name} holders": sorted(row["holders"]),
                    f"{name} health": row["health"],
                }
                found[f"{name} heat"] = heat[name]
        return found

    def node_pages(self) -> Numbers:
        found: Numbers = {}
        for row in self._console.api("/nodes", size="500")["items"]:
            if row["gpuMode"] != "none":
                page = self._console.api(f"/nodes/{row['name']}")
                assert page["node"] == row, "the table and the node's page differ"
                found |= _node_page(row["name"], page)
        return found

    def pools(self) -> Numbers:
        found: Numbers = {}
        for pool in self._overview["pools"]:
            name = f"{pool['model']} {pool['mode']}"
            assert pool["gpusFreeUnnamed"] == 0
            found |= {f"{name} gpus": pool["gpus"], f"{name} allocated": pool["gpusAllocated"]}
            found |= {f"{name} free": pool["gpusFree"], f"{name} unhealthy": pool["gpusUnhealthy"]}
            if pool["largestFreeMiB"] is not None:
                found[f"{name} largest"] = pool["largestFreeMiB"]
        return found

    def overview(self) -> Numbers:
        board = self._overview
        sentences = [
            board["sentence"],
            self._console.api("/gpus")["sentence"],
            self._console.api("/nodes")["sentence"],
        ]
        printed = [
            {key: value for key, value in each["values"].items() if key != "nodes"}
            for each in sentences
        ]
        gpus, memory = board["gpus"], board["gpuMemory"]
        assert printed[0] == printed[1]
        assert (printed[0]["total"], printed[0]["unhealthy"]) == (gpus["total"], gpus["unhealthy"])
        assert printed[0]["allocated"] == printed[2]["allocated"] == round(gpus["allocated"], 1)
        assert printed[0].get("idle", 0) == round(board["idleGpus"], 1)
        (warned,) = [
            each["values"] for each in board["warnings"] if each["code"] == "series-missing"
        ]
        return {
            **{f"nodes {name}": value for name, value in board["gpuNodes"].items()},
            **{f"gpus {name}": value for name, value in gpus.items()},
            "gpus idle": board["idleGpus"],
            "gpus reporting": board["gpusReporting"],
            "warned reporting": warned["reporting"],
            "warned total": warned["total"],
            "memory total": memory["totalMiB"],
            "memory allocated": memory["allocatedMiB"],
            "memory used": memory["usedMiB"],
            "memory used of": memory["usedOfMiB"],
            "utilization": board["gpuUtilPercent"],
            **{f"jobs {name.capitalize()}": value for name, value in board["jobs"].items()},
            **{
                f"consumer {each['namespace']} gpus": each["gpus"] for each in board["topConsumers"]
            },
            **{
                f"consumer {each['namespace']} memory": each["gpuMemoryMiB"]
                for each in board["topConsumers"]
            },
            **{
                f"consumer {each['namespace']} jobs": each["jobs"] for each in board["topConsumers"]
            },
            **self._attention(),
        }

    def _attention(self) -> Numbers:
        found: Numbers = {}
        for line in self._overview["attention"]:
            found[f"attention {line['kind']}"] = line["count"]
            if line["kind"] == "node-silent":
                found["attention node-silent gpus"] = line["sentence"]["values"]["gpus"]
        return found

    def jobs(self) -> Numbers:
        answer = self._console.api("/jobs", size="500")
        now = moment(answer["generatedAt"])
        assert now is not None
        found: Numbers = {}
        for row in answer["items"]:
            name, counts = row["name"], row["instances"]
            is_over, has_begun = row["finishedAt"] is not None, row["startedAt"] is not None
            found |= {
                f"{name} status": row["status"],
                f"{name} asked": row["gpusRequested"],
                f"{name} gpus": row["gpusAllocated"],
                f"{name} memory": row["gpuMemoryAllocatedMiB"],
                f"{name} used": row["gpuMemoryUsedMiB"],
                f"{name} used of": row["gpuMemoryUsedOfMiB"],
                f"{name} util": row["gpuUtilPercent"],
                **{
                    f"{name} {each}": counts[each]
                    for each in ("desired", "running", "unknown", "pending", "failed")
                },
                f"{name} nodes": row["nodes"],
                f"{name} duration from": now - row["durationSeconds"]
                if has_begun and not is_over
                else None,
                f"{name} duration": row["durationSeconds"] if is_over or not has_begun else None,
                f"{name} held from": None
                if row["heldSeconds"] is None
                else now - row["heldSeconds"],
                f"{name} quota": row["quotaPath"],
            }
        printed = answer["sentence"]["values"]
        found["sentence gpus"] = printed["gpus"]
        found["sentence waits from"] = (
            now - printed["waitSeconds"] if "waitSeconds" in printed else None
        )
        return found

    def job_pages(self) -> Numbers:
        found: Numbers = {}
        for row in self._items("/jobs"):
            page = self._console.api(f"/jobs/{row['namespace']}/{row['type']}/{row['name']}")
            scheduled = next((each for each in page["life"] if each["step"] == "scheduled"), None)
            found[f"{row['name']} scheduled"] = scheduled and [scheduled["count"], scheduled["of"]]
            found[f"{row['name']} bound since"] = scheduled and moment(scheduled["at"])
            for each in page["instances"]:
                name = f"{row['namespace']}/{each['name']}"
                found |= {
                    f"{name} status": each["status"],
                    f"{name} gpus": each["gpus"],
                    f"{name} memory": each["gpuMemoryAllocatedMiB"],
                }
                found |= {
                    f"{name} used": each["gpuMemoryUsedMiB"],
                    f"{name} util": each["gpuUtilPercent"],
                }
        return found

    def holders(self) -> Numbers:
        found: Numbers = {}
        for row in self._items("/holders"):
            name = f"{row['namespace']}/{row['name']}"
            found |= {
                f"{name} gpus": row["gpus"],
                f"{name} idle": row["gpusIdle"],
                f"{name} memory": row["gpuMemoryAllocatedMiB"],
                f"{name} used": row["gpuMemoryUsedMiB"],
                f"{name} used of": row["gpuMemoryUsedOfMiB"],
                f"{name} util": row["gpuUtilPercent"],
                f"{name} since": moment(row["heldSince"]),
                f"{name} node": row["node"],
                f"{name} owner": f"{row['ownerKind'] or 'Pod'}/{row['owner'] or row['name']}",
                f"{name} user": row["user"],
                f"{name} unknown": row["status"] == "Unknown",
            }
        printed = self._console.api("/holders")["sentence"]["values"]
        return {**found, **{name: printed[name] for name in ("pods", "owners", "gpus", "idle")}}

    def groups(self) -> Numbers:
        found: Numbers = {}
        for by in ("owner", "leaf", "user", "namespace"):
            for row in self._items("/holders/groups", by=by):
                name = (
                    f"{row['namespace']}/{row['kind']}/{row['name']}"
                    if by == "owner"
                    else row["name"]
                )
                found |= {
                    f"{by} {name} pods": row["pods"],
                    f"{by} {name} gpus": row["gpus"],
                    f"{by} {name} idle": row["gpusIdle"],
                    f"{by} {name} memory": row["gpuMemoryAllocatedMiB"],
                    f"{by} {name} used": row["gpuMemoryUsedMiB"],
                    f"{by} {name} used of": row["gpuMemoryUsedOfMiB"],
                    f"{by} {name} since": moment(row["heldSince"]),
                }
        return found

    def quota(self) -> Numbers:
        found: Numbers = {}
        for row in self._items("/quota/usage"):
            # one of the contract's five tables; no node here has this resource
            if row["resource"] == "aliyun.com/gpu":
                assert (row["used"], row["waitingPods"]) == (0, 0)
                continue
            name = f"{row['path']} {row['resource']}"
            found |= {f"{name} {each}": row[each] for each in ("min", "max", "used", "requested")}
            found |= {f"{name} waiting": row["waitingPods"], f"{name} written": row["minWritten"]}
            if row["isLeaf"]:
                found[f"{name} borrowed"] = row["borrowed"]
                found |= {
                    f"{name} of {each['user'] or '-'}": each["used"] for each in row["byUser"]
                }
                assert sum(each["used"] for each in row["byNamespace"]) == row["used"]
        found |= {
            f"{row['path']} waiting": row["waitingPods"]
            for row in self._console.api("/quota/tree")["items"]
        }
        return found

    def mine(self) -> Numbers:
        found: Numbers = {}
        for who in ("user=ann", "user=bob", "namespace=vision"):
            key, _, value = who.partition("=")
            work = self._console.api("/mine", **{key: value})
            held = work["held"]
            found |= {
                f"{who} pods": held["pods"],
                f"{who} gpus": held["gpus"],
                f"{who} idle": held["gpusIdle"],
            }
            found[f"{who} waits"] = sorted(
                f"{each['namespace']}/{each['name']}" for each in work["waits"]
            )
            starts = {
                f"start {each['model']}": each["onNodes"]
                for each in work["starts"]
                if each["onNodes"]
            }
            found |= starts
            for leaf in work["leaves"]:
                for each in leaf["resources"]:
                    if each["resource"] != "aliyun.com/gpu":
                        name = f"{who} {leaf['path']} {each['resource']}"
                        found |= {
                            name: each["mine"],
                            **{f"{name} {key}": each[key] for key in ("guaranteed", "borrowable")},
                        }
        return found


def _node_page(node: str, page: Any) -> Numbers:
    found: Numbers = {}
    for pod in page["pods"]:
        name = f"{node} {pod['namespace']}/{pod['name']}"
        found |= {
            f"{name} gpus": pod["gpus"],
            f"{name} memory": pod["gpuMemoryAllocatedMiB"],
            f"{name} since": moment(pod["heldSince"]),
        }
        found[f"{name} cards"] = pod["gpuIndexes"]
    for card in page["gpus"] if page["gpus"][0]["uuid"] else ():
        name = f"{node}/{card['index']}"
        found |= {
            f"{name} allocated": card["memoryAllocatedMiB"],
            f"{name} free": card["memoryFreeMiB"],
        }
        found[f"{name} is idle"] = "idle" in card["flags"]
        for each in card["migInstances"]:
            reported = [
                each["profile"],
                each["memoryTotalMiB"],
                each["memoryUsedMiB"],
                each["utilPercent"],
            ]
            found[f"{name} instance {each['id']}"] = [
                *reported,
                *(f"{pod['namespace']}/{pod['name']}" for pod in each["pods"]),
            ]
    return found
