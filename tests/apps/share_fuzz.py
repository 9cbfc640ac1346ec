"""Random valid and invalid requests to the scheduler extender, as kube-scheduler, a faulty client
or an attacker sends them: each gets an answer, and no card is ever granted twice.

`python -m tests.apps.share_fuzz [SECONDS] [SEED]` sends as many requests as the time permits and
prints their number; a failure is printed with the seed and the number of the request. Requests go
to the app itself, without a socket. The API server is in memory and loses replies, and pods come,
end and lose their annotations meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.apps.share_storm import ExtenderMaker
from tests.jumping_loop import JumpingLoop
from tests.rules.sharing import node

from fairlead.apps.extender import Extender
from fairlead.apps.question_protocol import Question
from fairlead.apps.scheduler_extender import PREFIX, SchedulerExtender
from fairlead.wire.kube.objects import WirePod, parse_pod

Object = dict[str, Any]
NODES = {"n1": (15, 15), "n2": (8,), "n3": (14, 14, 10)}
VERBS = ("filter", "prioritize", "bind", "preempt")
UNITS = (
    "1",
    "2",
    "4",
    "4",
    "7",
    "14",
    "15",
    "0",
    "-1",
    "1.5",
    "1k",
    "5000m",
    "4Gi",
    "9" * 30,
    "x",
    "",
    4,
    1e300,
    None,
    [],
)
MALFORMED: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**70,
    1e308,
    "",
    "x",
    "n1",
    "²",
    "\x00",
    "a" * 300,
    [],
    {},
    [[]],
    {"": None},
    [None],
    "\ud800",
)
KEYS = (
    "Pod",
    "pod",
    "NodeNames",
    "Nodes",
    "items",
    "NodeNameToVictims",
    "NodeNameToMetaVictims",
    "PodUID",
    "Node",
    "metadata",
    "spec",
)
PAGES = (
    "/metrics",
    f"{PREFIX}/inspect",
    f"{PREFIX}/inspect/n1",
    f"{PREFIX}/inspect/\ufffd",
    "/readyz",
    "/nowhere",
)


class Fuzz:
    """One extender and its clients. `asked` counts requests, `answers` counts them by status."""

    def __init__(self, seed: int, make: ExtenderMaker) -> None:
        self.rng = random.Random(seed)
        self.asked = 0
        self.answers: dict[int, int] = {}
        self.server = FakeServer(
            self.rng,
            {
                name: msgspec.structs.replace(node(name, units), uid=name)
                for name, units in NODES.items()
            },
        )
        api = FakeSharingApi(self.server, random.Random(seed), trouble=0.3)
        self.extender = make(api, "me", lease_name="l", monotonic=asyncio.get_running_loop().time)
        self._app = SchedulerExtender(self.extender)
        self._made = 0

    async def run(self, seconds: float, questions: int) -> None:
        """Runs for `seconds` or `questions` requests, whichever ends first."""
        running = asyncio.ensure_future(self.extender.run())
        ends = time.monotonic() + seconds
        try:
            while self.asked < questions and time.monotonic() < ends:
                await self._live()
                for _ in range(50):
                    await self._ask()
                    await asyncio.sleep(0.001)
                assert not running.done(), running.exception()
                assert not self.server.faults, self.server.faults[:3]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _live(self) -> None:
        """A pod comes; other pods end, leave, are deleted or damaged."""
        self._made += 1
        made = self._pod(f"p{self._made}", str(self.rng.randint(1, 15)), {}, cores=("30", "100"))
        self.server.write(parse_pod(msgspec.json.decode(msgspec.json.encode(made), type=WirePod)))
        for pod in list(self.server.pods.values()):
            chance = self.rng.random()
            if chance < 0.05 or len(self.server.pods) > 60:
                self.server.remove(pod.uid)
            elif chance < 0.1 and pod.node:
                self.server.write(
                    msgspec.structs.replace(
                        pod, phase="Succeeded" if pod.deleted_at else pod.phase, deleted_at=1.0
                    )
                )
            elif chance < 0.12 and pod.is_holding and pod.grants:
                self.server.damage(pod)

    async def _ask(self) -> None:
        self.asked += 1
        if self.rng.random() < 0.02:
            status, body = await self._call("GET", self.rng.choice(PAGES), b"")
            assert status in (200, 404), (status, body)
            return
        verb, text = self.rng.choice(VERBS), b""
        try:
            text = self._body(verb)
            status, answer = await self._call("POST", f"{PREFIX}/{verb}", text)
            assert status in (200, 400), (status, answer)
            if status == 200:
                json.loads(answer)
        except Exception as error:
            raise AssertionError(
                f"question {self.asked}, {verb} {text[:2000]!r}: {error!r}"
            ) from error

    async def _call(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        asked = Question(method, path, "127.0.0.1", body=body)
        status, _, answer = self._app.refusal(asked) or await self._app.answer(asked)
        self.answers[status] = self.answers.get(status, 0) + 1
        return status, answer

    # --- bodies -----------------------------------------------------------------------------------

    def _body(self, verb: str) -> bytes:
        body: Any = self._good(verb)
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2, 5))):
            body = self._spoiled(body)
        text = json.dumps(body).encode()
        chance = self.rng.random()
        if chance < 0.05:
            return text[: self.rng.randrange(len(text) + 1)]
        if chance < 0.15:
            at = self.rng.randrange(len(text) + 1)
            return (
                text[:at]
                + self.rng.randbytes(self.rng.randint(1, 3))
                + text[at + self.rng.randint(0, 3) :]
            )
        return self.rng.randbytes(20) if chance < 0.16 else text

    def _good(self, verb: str) -> Object:
        rng, received = self.rng, self.extender.machine.feed.pods
        # for these the API server's object counts, not the request
        known = [pod for pod in self.server.pods.values() if pod.uid in received]
        name = (
            rng.choice(known).name if known and rng.random() < 0.8 else f"q{rng.randint(0, 10**6)}"
        )
        if verb == "bind":
            return {
                "PodName": name,
                "PodNamespace": "default",
                "PodUID": f"uid-{name}",
                "Node": rng.choice((*NODES, "gone")),
            }
        labels = (
            {"aliyun.com/gpu-count": rng.choice(("1", "2", "3", "x", "-1", "9" * 20))}
            if rng.random() < 0.3
            else {}
        )
        pod = self._pod(name, rng.choice(UNITS), labels)
        names = rng.sample([*NODES, "gone", ""], rng.randint(0, 5))
        if verb == "preempt":
            uids = [{"UID": each.uid} for each in rng.sample(known, min(3, len(known)))]
            return {
                "Pod": pod,
                "NodeNameToMetaVictims": {
                    each: {"Pods": uids, "NumPDBViolations": 0} for each in names
                },
            }
        return (
            {"Pod": pod, "NodeNames": names}
            if rng.random() < 0.8
            else {"Pod": pod, "Nodes": {"items": [_node(each) for each in names]}}
        )

    def _pod(self, name: str, units: Any, labels: Object, cores: Sequence[Any] = UNITS) -> Object:
        limits = {"aliyun.com/gpu-mem": units}
        if self.rng.random() < 0.1:
            limits["aliyun.com/gpu-core.percentage"] = self.rng.choice(cores)
        notes = (
            {"fairlead.io/gpu-placement": self.rng.choice(("spread", "binpack", "²"))}
            if self.rng.random() < 0.2
            else {}
        )
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels,
            "annotations": notes,
        }
        spec: Object = {
            "containers": [{"name": "main", "resources": {"limits": limits}}],
            "priority": self.rng.choice((0, 0, 5, -5)),
        }
        return {
            "metadata": metadata,
            "spec": spec,
            "status": {"nominatedNodeName": self.rng.choice((None, None, "n1"))},
        }

    def _spoiled(self, value: Any) -> Any:
        """Replaces a random part of the value."""
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.85:
            key = rng.choice(list(value))
            if rng.random() < 0.1:
                return {other: each for other, each in value.items() if other != key}
            if rng.random() < 0.1:
                return {**value, rng.choice(KEYS): value[key]}
            return {**value, key: self._spoiled(value[key])}
        if isinstance(value, list) and value and rng.random() < 0.8:
            at = rng.randrange(len(value))
            return [*value[:at], self._spoiled(value[at]), *value[at + 1 :]]
        return rng.choice(MALFORMED)


def _node(name: str) -> Object:
    return {
        "metadata": {"name": name, "labels": {"cgpu": "true"}},
        "status": {"capacity": {"aliyun.com/gpu-mem": "30"}},
    }


def live(seed: int, seconds: float, questions: int, make: ExtenderMaker = Extender) -> Fuzz:
    """Raises AssertionError with the seed and the command that repeats the run."""
    loop = JumpingLoop()

    async def whole() -> Fuzz:
        fuzz = Fuzz(seed, make)
        await fuzz.run(seconds, questions)
        return fuzz

    try:
        return loop.run_until_complete(whole())
    except Exception as error:
        raise AssertionError(
            f"fuzz {seed}: {error!r}; again: python -m tests.apps.share_fuzz {seconds:.0f} {seed}"
        ) from error
    finally:
        loop.close()


if __name__ == "__main__":
    logging.disable()
    left, number, total = float((sys.argv[1:] or ["60"])[0]), int((sys.argv[2:] or ["1"])[0]), 0
    began = time.monotonic()
    while time.monotonic() < began + left:
        lived = live(number, began + left - time.monotonic(), 100_000)
        total, number = total + lived.asked, number + 1
        print(
            (
                f"{total} questions, seed {number - 1}: by status {lived.answers}, "
                f"{len(lived.server.bindings)} bound"
            ),
            flush=True,
        )
    print(f"{total} questions in {time.monotonic() - began:.0f} s, nothing amiss")
