"""Takes pictures of the console into docs/pictures/, light and dark, for documents.

`make pictures` runs it. The worlds are always the same: the default scenario, and document 004's
with its quota tree and three of its Deployments, seed 0, on a machine whose clock shows `MORNING`.
They stand still between the pictures, so that all of them show the same ten seconds. A picture
changes when the console does, or what the simulated company does.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from debian import CHINESE_FONTS, CHROMIUM, install_missing, why_missing
from progress import StepFailed, say
from toolchains import REPOSITORY

FOLDER = REPOSITORY / "docs" / "pictures"
LOG = REPOSITORY / "build" / "logs" / "pictures.log"
SHADES = ("light", "dark")
MORNING = "2026-01-05T09:29:30Z"
PICTURE_TIME = "2026-01-05T09:30:00Z"
"""Half a minute after `MORNING`: by then the laptop has started, however slow the machine is."""
START_SECONDS = 120.0
STOP_SECONDS = 15.0
SAMPLED_SECONDS = 12.0
"""Two intervals of the exporter and the console, five seconds each: then every card is read."""
LOOK_MILLISECONDS = 700
MOST_LOOKS = 20

ON_THAT_MORNING = """
import calendar, sys, time
morning = float(calendar.timegm(time.strptime(sys.argv.pop(1), "%Y-%m-%dT%H:%M:%SZ")))
time.time = lambda: morning
from fairlead.run.programs import run_fairlead
run_fairlead()
"""
"""`fairlead` on a machine whose clock always shows that morning.

The world begins by it, to the microsecond. How time goes by is read elsewhere (the event loop), and
so are the dates of certificates (`datetime`), which clients compare with the true time.
"""


@dataclass(frozen=True)
class Board:
    """One picture: a path of the console in a window, or the part of the page that has a test id.

    `scale` is device pixels per CSS pixel; it keeps the file below 250 kB. `typed`: what stands in
    which field, by test id, after a press on `pressed`.
    """

    name: str
    path: str
    width: int
    height: int
    scale: float
    part: str = ""
    pressed: str = ""
    typed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Scene:
    """A world, what is made in it first, and the pictures of it."""

    scenario: str
    made: tuple[tuple[str, str], ...]
    boards: tuple[Board, ...]


COMPANY = (
    Board("cluster", "/overview", 1200, 658, scale=2),
    Board("node", "/nodes?open=gpu-shared-1", 1440, 740, scale=1.6, part="side-panel"),
    Board(
        "job",
        "/jobs?open=language/pytorchjob/bert-large-3",
        1440,
        740,
        scale=1.6,
        part="side-panel",
    ),
)
DEMO = (
    Board("quota", "/quota", 1200, 700, scale=1.25),
    Board(
        "quota-what-if",
        "/quota/tree",
        1200,
        820,
        scale=1.6,
        pressed="action-what-if",
        typed=(("bound-root.b.1-cpu-min", "15"), ("bound-root.b.2-cpu-min", "5")),
    ),
)
NAMESPACE = '{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "namespace{}"}}}}'
MANIFESTS = REPOSITORY / "examples"
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
SETTLED = (
    *(("/api/v1/namespaces", NAMESPACE.format(number)) for number in range(1, 5)),
    (TREES, "quota-tree.yaml"),
    *(
        (f"/apis/apps/v1/namespaces/namespace{number}/deployments", f"nginx{number}.yaml")
        for number in range(1, 4)
    ),
)
"""Where what is made: an object, or a file of `MANIFESTS`."""
SCENES = (Scene("default", (), COMPANY), Scene("documents-004", SETTLED, DEMO))
BETWEEN_SECONDS = 2.0
"""Seconds between two objects: the API server of a laptop answers when it is written."""


@contextmanager
def running_laptop(scene: Scene) -> Iterator[str]:
    """A `fairlead up` that is paused at `PICTURE_TIME`; the address of its console.

    Raises StepFailed.
    """
    folder = Path(tempfile.mkdtemp(prefix="fairlead-pictures-"))
    ready = folder / "ready.json"
    ports = [
        f"--{name}=0" for name in ("port", "api-port", "cluster-exporter-port", "gpu-exporter-port")
    ]
    argv = [
        sys.executable,
        "-c",
        ON_THAT_MORNING,
        MORNING,
        "up",
        "--sign-in=false",
        f"--scenario={scene.scenario}",
        *ports,
        f"--ready-file={ready}",
    ]
    hidden = {"KUBECONFIG", "PROMETHEUS_ADDRESS", "PROMETHEUS_TOKEN", "FAIRLEAD_CONFIG"}
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and not name.lower().endswith("_proxy")
    }
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        laptop = subprocess.Popen(
            argv, stdout=log, stderr=subprocess.STDOUT, env={**env, "XDG_STATE_HOME": str(folder)}
        )
    try:
        console = _console(laptop, ready)
        _make(ready, scene.made)
        _stand_still(console)
        yield console
    finally:
        laptop.terminate()
        try:
            laptop.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            laptop.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _console(laptop: subprocess.Popen[bytes], ready: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while not (ready.exists() and ready.stat().st_size):
        if laptop.poll() is not None or time.monotonic() > end:
            raise StepFailed(f"the laptop did not start\n{LOG.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)
    return str(json.loads(ready.read_text(encoding="utf-8"))["console"]).rstrip("/")


def _make(ready: Path, made: tuple[tuple[str, str], ...]) -> None:
    """As kubectl would, with the laptop's own kubeconfig."""
    config = json.loads(
        Path(json.loads(ready.read_text(encoding="utf-8"))["kubeconfig"]).read_text(
            encoding="utf-8"
        )
    )
    cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    headers = {"Content-Type": "application/yaml", "Authorization": f"Bearer {token}"}
    for path, picture in made:
        body = (MANIFESTS / picture).read_bytes() if picture.endswith(".yaml") else picture.encode()
        request = urllib.request.Request(f"{cluster['server']}{path}", body, headers, method="POST")
        urllib.request.urlopen(request, timeout=10, context=context).close()
        time.sleep(BETWEEN_SECONDS)


def _stand_still(console: str) -> None:
    """Go to `PICTURE_TIME` and pause there, until the cards have been read as they are then."""
    end = time.monotonic() + START_SECONDS
    _order(console, {"action": "pause"})
    _order(console, {"action": "until", "until": PICTURE_TIME})
    while (clock := _ask(console, "/api/v1/clock"))["until"]:
        if time.monotonic() > end:
            raise StepFailed(
                f"the laptop does not reach {PICTURE_TIME}; its clock shows {clock['now']}"
            )
        time.sleep(0.2)
    time.sleep(SAMPLED_SECONDS)


def _ask(console: str, path: str) -> dict[str, object]:
    with urllib.request.urlopen(f"{console}{path}", timeout=10) as answer:
        picture: dict[str, object] = json.load(answer)
        return picture


def _order(console: str, order: dict[str, object]) -> None:
    headers = {
        "Content-Type": "application/json",
        "X-Fairlead-Csrf": str(_ask(console, "/api/v1/me")["csrf"]),
    }
    request = urllib.request.Request(
        f"{console}/api/v1/clock", json.dumps(order).encode(), headers, method="POST"
    )
    urllib.request.urlopen(request, timeout=10).close()


def take(browser: Browser, console: str, board: Board, shade: str) -> Path:
    """One picture, once the page looks the same twice."""
    context = browser.new_context(
        viewport={"width": board.width, "height": board.height},
        color_scheme="dark" if shade == "dark" else "light",
        device_scale_factor=board.scale,
        locale="en-US",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.add_init_script("localStorage.setItem('fairlead.menu', 'collapsed')")
    try:
        page = context.new_page()
        page.goto(f"{console}{board.path}")
        page.locator(
            "[data-testid=sentence], [data-testid=page-quota], [data-testid=page-quota-tree]"
        ).first.wait_for()
        if board.pressed:
            page.get_by_test_id(board.pressed).click()
        for field, text in board.typed:
            page.get_by_test_id(field).fill(text)
        _wait_until_it_stands(page)
        with _moving(console):
            page.locator("[data-testid=badge-simulated][data-paused=false]").wait_for()
            file = FOLDER / f"{board.name}-{shade}.png"
            shown = page.get_by_test_id(board.part) if board.part else page
            shown.screenshot(path=file, animations="disabled")
        return file
    finally:
        context.close()


def _wait_until_it_stands(page: Page) -> None:
    before = b""
    for _ in range(MOST_LOOKS):
        page.wait_for_timeout(LOOK_MILLISECONDS)
        now = page.screenshot()
        if now == before:
            return
        before = now
    raise StepFailed(f"{page.url} does not come to rest")


@contextmanager
def _moving(console: str) -> Iterator[None]:
    """Time goes on inside the block: the badge of a world that stands still is amber."""
    _order(console, {"action": "resume"})
    try:
        yield
    finally:
        _order(console, {"action": "pause"})


def main() -> int:
    named = os.environ.get("CHROMIUM_PATH", "")
    needed = (CHINESE_FONTS,) if named else (CHROMIUM, CHINESE_FONTS)
    try:
        install_missing(needed)
        if missing := why_missing(needed):
            raise StepFailed(missing[0], missing[1])
        program = named or shutil.which(CHROMIUM.program)
        FOLDER.mkdir(parents=True, exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            for scene in SCENES:
                with running_laptop(scene) as console:
                    for board in scene.boards:
                        for shade in SHADES:
                            file = take(browser, console, board, shade)
                            say(f"{file.relative_to(REPOSITORY)}: {file.stat().st_size // 1000} kB")
            browser.close()
    except StepFailed as failed:
        say(f"error: {failed.what}" + (f"\nhint: {failed.hint}" if failed.hint else ""))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
