"""The day of an administrator on a real control plane: jobs that the real mpi-operator runs, a
console with the rights of deploy/, and a ledger that has them after all of them are deleted. What
is compared comes from the API server, and for the time slider from the page at that moment.

The console records usage into SQLite, or `fairlead usage-recorder` into PostgreSQL, by turns.

The console takes the time from the API server's answers: a proxy between them lets an hour and a
day pass.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect
from tests.browser.chromium import PATIENCE_MS, running_chromium, window
from tests.browser.signed_in import signed_in
from tests.documents.usage_truth import capacity, held_seconds
from tests.kube.console_line import ACCOUNT, Administrator, install_rights
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.fault_proxy import FaultProxy, running_fault_proxy
from tests.kube.gpu_pages import Card, dcgm_page, served
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kwok_stages import RUN_TIME
from tests.kube.objects import gpu_node, namespace
from tests.kube.oidc_provider import PlainBrowser
from tests.kube.operators import running_mpi_operator
from tests.kube.quota_line import SYSTEM
from tests.kube.servers import Server, run_arena, run_fairlead, running
from tests.stores.database_servers import Postgres, is_installed
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead.edge.store.address import POSTGRESQL, SQLITE
from fairlead.settings import SIGN_IN_KEY_SECRET

Object = dict[str, Any]
SPACE = "story"
NODES = ("story-1", "story-2")
TRAINER, SLEEPER, SHORT = "trainer", "sleeper", "short"
GPUS = {TRAINER: 1, SLEEPER: 2, SHORT: 1}
HOUR, DAY = 3600, 86_400
CLOSED_AFTER = 120
"""Seconds after an hour until its rows are written."""
READ_WITHIN = 1200
"""Seconds, more than the recorder needs to read the cards twice."""
LATEST_SECONDS = 3
"""A deletion is recorded at most this long after kubectl has returned."""
PRICE, LIST_PRICE = 16, 20
GPU_SHARE = Fraction(9, 10)
HOLDERS = "Held by"
"""The head of a column of the map's table."""
MICRO = Fraction(1, 1_000_000)


class Story(NamedTuple):
    """`cards`: what the exporter of all nodes reports. `proxy`: between console and API server."""

    cluster: ControlPlane
    console: Server
    proxy: FaultProxy
    cards: list[Card]
    administrator: Administrator
    kubeconfig: Path

    def now(self) -> float:
        """The time for the console."""
        return time.time() + self.proxy.ahead

    def let_time_pass(self, until: float) -> None:
        self.proxy.ahead = round(until - time.time())

    def fairlead(self, *words: str, status: int = 0) -> str:
        """What a command of the administrator prints, who asks the console for the past."""
        return run_fairlead(self.kubeconfig, *words, status=status)

    def asked(self, *words: str) -> str:
        return self.fairlead(*words, f"--console={self.console.url}")

    def read(self, *words: str) -> Any:
        return json.loads(self.asked(*words, "-o", "json"))

    def page(self, path: str) -> Any:
        """What a page of the console asks for."""
        status, answer = self.administrator.send(self.console, "GET", path)
        assert status == 200, answer
        return answer

    def has_kept(self, *texts: str) -> bool:
        """Whether they are in the cluster as the ledger had it a second ago."""
        address = f"{self.console.url}/api/v1/past/snapshot?at=-1s"
        asked = {"Authorization": f"Bearer {self.administrator.token}"}
        found = PlainBrowser().send(address, **asked)
        if found.status != 200:
            return False
        snapshot = gzip.decompress(found.body).decode()
        return all(each in snapshot for each in texts)

    def pods(self) -> list[Object]:
        return self.cluster.admin.get("pods", "-n", SPACE)


@pytest.fixture(scope="module", params=in_turn((SQLITE, POSTGRESQL), 2))
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    if request.param == POSTGRESQL and not is_installed(POSTGRESQL):
        pytest.skip("no PostgreSQL")
    cards: list[Card] = []
    with (
        running_control_plane() as cluster,
        running_mpi_operator(cluster),
        running_fault_proxy(cluster, as_admin=False) as proxy,
        served(lambda: dcgm_page(cards)) as page,
        ExitStack() as servers,
    ):
        install_rights(cluster)
        cluster.admin.apply([namespace(SPACE)])
        cluster.admin.create([gpu_node(name, 2) for name in NODES])
        wait_until("the nodes are Ready", lambda: all(map(is_ready, cluster.admin.get("nodes"))))
        common = (
            f"--kubeconfig={of_account(cluster, proxy.server)}",
            f"--gpu-exporter=http://{page}/metrics",
            f"--lease-namespace={SYSTEM}",
            *store_of(request.param, cluster, servers),
        )
        flags = ("--sign-in=on", f"--sign-in-key-secret={SYSTEM}/{SIGN_IN_KEY_SECRET}")
        log = cluster.logs
        if request.param == SQLITE:
            flags += ("--usage-recorder",)
        else:
            servers.enter_context(running("usage-recorder", *common, log=log / "recorder.log"))
        console = servers.enter_context(running("console", *common, *flags, log=log / "story.log"))
        who = Administrator(cluster.admin)
        path = cluster.folder / "administrator.kubeconfig"
        write_kubeconfig(path, cluster.server, cluster.authority, token_user(who.token))
        made = Story(cluster, console, proxy, cards, who, path)
        # A bind is stamped with a whole second: the nodes' records are older.
        wait_until("the nodes are recorded", lambda: made.has_kept(*NODES))
        yield made


def store_of(engine: str, cluster: ControlPlane, servers: ExitStack) -> tuple[str, ...]:
    """The flags of an empty store. A database server ends with `servers`."""
    if engine == SQLITE:
        return (f"--store=sqlite:///{cluster.folder / 'story.sqlite'}",)
    server = Postgres()
    servers.callback(server.end)
    address = server.new_database("story")
    secret = cluster.folder / "store.password"
    secret.write_text(address.password)
    secret.chmod(0o600)
    return (f"--store={address.place}", f"--store-password-file={secret}")


def of_account(cluster: ControlPlane, server: str) -> Path:
    """The kubeconfig of the console's account."""
    words = ("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=4h")
    user = token_user(cluster.admin.run(*words).strip())
    path = cluster.folder / "console.kubeconfig"
    return write_kubeconfig(path, server, cluster.authority, user)


def is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def submit(story: Story, name: str) -> None:
    """An MPIJob of a launcher and one worker, whose GPUs its user's name is on."""
    run_arena(
        *("submit", "mpijob", f"--name={name}", "-n", SPACE, "--image=app:1", "--workers=1"),
        *(f"--gpus={GPUS[name]}", "--cpu=2", "--memory=4Gi", "--clean-task-policy=None"),
        *(f"--label=arena.kubeflow.org/console-user=user-of-{name}", "train"),
        kubeconfig=story.kubeconfig,
    )


def job_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["training.kubeflow.org/job-name"])


def bound_at(pod: Object) -> float:
    (stamp,) = (
        each["lastTransitionTime"]
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    )
    return datetime.fromisoformat(stamp).timestamp()


def gpus_of(pod: Object) -> int:
    (container,) = pod["spec"]["containers"]
    return int(container["resources"]["requests"].get("nvidia.com/gpu", "0"))


def cost(pod: Object, node: Object, seconds: float, price: int = PRICE) -> Fraction:
    """By the specification, of what the pod's container requests of the node."""
    cores, mib = capacity(node)
    (container,) = pod["spec"]["containers"]
    asked = container["resources"]["requests"]
    assert (asked["cpu"], asked["memory"]) == ("2", "4Gi")
    rest = (Fraction(2) / cores + Fraction(4096) / mib) / 2
    gpus = Fraction(gpus_of(pod), int(node["status"]["capacity"]["nvidia.com/gpu"]))
    share = GPU_SHARE * gpus + (1 - GPU_SHARE) * rest
    return price * Fraction(seconds) / HOUR * share


def card_of(pod: Object, index: int, duty: int) -> Card:
    holder = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return Card(pod["spec"]["nodeName"], index, duty, 1000, 81920, holder)


def iso(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def without_times(table: str) -> str:
    """Without warnings, and without durations, which differ by the second of the question."""
    lines = [each for each in table.splitlines() if not each.startswith("warning:")]
    return re.sub(r"\b[0-9]+[smh]\b *", "", "\n".join(lines).strip())


def run_jobs(story: Story) -> dict[str, list[Object]]:
    """The pods of each job, while all of them run and the exporter reports their cards."""
    for name in GPUS:
        submit(story, name)

    def running_pods() -> list[Object]:
        return [each for each in story.pods() if each["status"]["phase"] == "Running"]

    wait_until("all pods run", lambda: len(running_pods()) == 2 * len(GPUS), seconds=300)
    found = dict[str, list[Object]]()
    for pod in running_pods():
        found.setdefault(job_of(pod), []).append(pod)
    used = dict.fromkeys(NODES, 0)
    for name, pods in found.items():
        for pod in pods:
            for _ in range(gpus_of(pod)):
                node = pod["spec"]["nodeName"]
                story.cards.append(card_of(pod, used[node], 0 if name == SLEEPER else 90))
                used[node] += 1
    return found


def end(story: Story, pods: list[Object]) -> list[Object]:
    """The pods as they are when their containers have ended."""
    names = [each["metadata"]["name"] for each in pods]
    for name in names:
        story.cluster.admin.run("annotate", "pod", name, "-n", SPACE, f"{RUN_TIME}=0s")

    def ended() -> list[Object]:
        return [
            each
            for each in story.pods()
            if each["metadata"]["name"] in names and each["status"]["phase"] == "Succeeded"
        ]

    wait_until("the containers have ended", lambda: len(ended()) == len(names))
    return ended()


def delete(story: Story, *names: str) -> tuple[float, float]:
    """Between which times, for the console, the pods of these jobs went."""
    before = story.now()
    story.cluster.admin.run("delete", "mpijobs", *names, "-n", SPACE)
    wait_until("the pods are gone", lambda: not any(job_of(each) in names for each in story.pods()))
    latest = story.now() + LATEST_SECONDS

    def pods() -> list[Any]:
        paths = [f"/jobs/{SPACE}/mpijob/{name}/cost" for name in names]
        return [each for path in paths for each in story.page(path)["pods"]]

    wait_until("their ends are recorded", lambda: all(each["end"] for each in pods()))
    # On a busy machine the recorder may lose its Lease meanwhile: then it does not know when.
    is_known = all(each["status"] != "inferred" for each in pods())
    return before if is_known else 0.0, latest


LISTS = (("top", "node"), ("list", "-n", SPACE))


def was(story: Story, moment: str) -> list[str]:
    return [without_times(story.asked("at", moment, *words)) for words in LISTS]


def moment_of(story: Story, present: list[str]) -> str:
    """A moment at which the recorder had seen what the lists of the present printed."""
    moments: list[str] = []

    def is_seen() -> bool:
        moments.append(iso(time.time() - 1))
        return was(story, moments[-1]) == present

    wait_until("the recorder has seen the jobs", is_seen, pause_seconds=1)
    return moments[-1]


def wait_for_cards(story: Story) -> None:
    """Until the recorder has read the cards once more: it has then seen one more card."""
    new = Card(NODES[0], max(each.index for each in story.cards) + 1, 0, 0, 81920)
    story.cards.append(new)

    wait_until("the recorder has read the cards", lambda: story.has_kept(new.uuid), pause_seconds=1)


def let_an_hour_pass(story: Story) -> Any:
    """The answer of `fairlead idle` when the rows of a whole hour are written, in which the
    recorder has read the cards.
    """
    whole = (time.time() // HOUR + 3) * HOUR
    near = whole - READ_WITHIN
    story.let_time_pass(near)
    wait_until("the console has it", lambda: story.page("/idle")["generatedAt"] >= iso(near))
    wait_for_cards(story)
    wait_for_cards(story)  # the first reading that a recorder has of a card counts for no time
    story.let_time_pass(whole + CLOSED_AFTER + 1)

    def is_written() -> bool:
        return any(each["reason"] == "idle" for each in story.page("/idle")["items"])

    wait_until("idle pods are listed", is_written, pause_seconds=1)
    return story.read("idle")


def overview(story: Story, folder: Path, pods: list[str], moment: str = "") -> dict[str, str]:
    """What the page Cluster shows, now or at the moment, once these pods are on its map."""
    path = f"/overview?at={moment}" if moment else "/overview"

    def look() -> dict[str, str]:
        url, token = story.console.url, story.administrator.token
        with running_chromium(folder) as browser, window(browser, url) as tab:
            expect.set_options(timeout=PATIENCE_MS)
            signed_in(tab, url, token, path, "overview")
            expect(tab.at("past-banner")).to_have_count(1 if moment else 0)
            tab.at("action-map-table").click()
            for name in pods:
                expect(tab.at("panel-gpu-map")).to_contain_text(name)
            return {
                "running": tab.at("jobs-running").locator("b").inner_text(),
                "pending": tab.at("jobs-pending").locator("b").inner_text(),
                "allocated": tab.at("panel-gpus-allocated-total").inner_text(),
                "holders": repr(sorted(tab.column("gpu-map", HOLDERS).items())),
            }

    with ThreadPoolExecutor(1) as thread:  # tests of this process have loops of their own
        return thread.submit(look).result()


def reports(story: Story, first: float, last: float) -> list[Any]:
    """The reports of the months that contain these times, with the last of their days."""
    midnight = (last // DAY + 1) * DAY
    story.let_time_pass(midnight + HOUR + 60)
    months = sorted({iso(first)[:7], iso(last)[:7]})

    def has_the_day() -> bool:
        send = story.administrator.send
        status, found = send(story.console, "GET", f"/reports/{months[-1]}?format=json")
        return status == 200 and found["until"] >= iso(midnight)

    wait_until("the day is in the report", has_the_day, pause_seconds=1)
    return [story.read("report", month) for month in months]


def total(found: list[Any], user: str, figure: str) -> Fraction:
    rows = [each for report in found for each in report["users"] if each["name"] == user]
    return sum((Fraction(str(each[figure])) for each in rows), Fraction(0))


def test_jobs_are_known_after_they_are_deleted(
    story: Story, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("chromium")
    prices = (f"--price={PRICE}", f"--list-price={LIST_PRICE}", "--currency=EUR")
    story.asked("prices", "add", *prices, f"--valid-from={iso(time.time())[:7]}-01")
    pods = run_jobs(story)
    nodes = {each["metadata"]["name"]: each for each in story.cluster.admin.get("nodes")}
    present = [without_times(story.fairlead(*words)) for words in LISTS]
    during = moment_of(story, present)
    on_cards = [each["metadata"]["name"] for of in pods.values() for each in of if gpus_of(each)]
    shown = overview(story, folder, on_cards)
    assert (shown["running"], shown["pending"]) == (str(len(GPUS)), "0")
    ended = end(story, pods[TRAINER])
    short = delete(story, SHORT)
    # Before a day passes for the console alone: there a sign-in ends with its token.
    assert overview(story, folder, on_cards, during) == shown

    idle = let_an_hour_pass(story)
    (held,) = (each for each in idle["items"] if each["reason"] == "idle")
    (sleeper,) = (each for each in pods[SLEEPER] if gpus_of(each))
    assert (held["user"], held["job"]) == (f"user-of-{SLEEPER}", SLEEPER)
    assert (held["pod"], held["node"]) == (sleeper["metadata"]["name"], sleeper["spec"]["nodeName"])
    assert held["advice"]["text"] == f"ask user-of-{SLEEPER} to end the pod, or to use its GPUs"
    money = Fraction(str(held["gpuHours"])) * PRICE * GPU_SHARE / 2
    assert abs(Fraction(held["cost"]) - money) < Fraction(1, 100)
    free = {each["node"] for each in idle["items"] if each["reason"] == "free"}
    assert free == set(NODES) - {held["node"]}

    last = delete(story, TRAINER, SLEEPER)
    assert story.pods() == story.cluster.admin.get("mpijobs", "-A") == []
    found = reports(story, bound_at(sleeper), last[1])

    trained = sum(held_seconds(each) * gpus_of(each) for each in ended)
    assert round(total(found, f"user-of-{TRAINER}", "gpuHours") * HOUR) == trained
    spent = sum(cost(each, nodes[each["spec"]["nodeName"]], held_seconds(each)) for each in ended)
    assert abs(total(found, f"user-of-{TRAINER}", "cost") - spent) < MICRO
    for name, (first, latest) in ((SHORT, short), (SLEEPER, last)):
        (worker,) = (each for each in pods[name] if gpus_of(each))
        held_gpus = round(total(found, f"user-of-{name}", "gpuHours") * HOUR) / gpus_of(worker)
        assert first - 1 <= bound_at(worker) + held_gpus <= latest + 1, name
    assert [each["gaps"] for each in found] == [[] for _ in found]
    (of_job,) = (each for each in story.read("cost", TRAINER, "-n", SPACE)["pods"] if each["gpus"])
    assert (of_job["status"], of_job["seconds"]) == ("finished", trained)

    assert was(story, during) == present
