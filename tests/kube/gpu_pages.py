"""Pages of GPU exporters other than Fairlead's: dcgm-exporter's family, and the older
`nvidia_gpu_*` of the reference's boards.

They are written from the two vendors' documents, with numbers that a test chooses. So the test
knows what a table must show.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

MIB = 1 << 20


class Card(NamedTuple):
    """One GPU and its values. `pod` is (namespace, name) of the pod that holds it whole; `sharers`:
    (namespace, name, duty, used MiB).
    """

    node: str
    index: int
    duty: int
    used_mib: int
    total_mib: int
    pod: tuple[str, str] | None = None
    sharers: tuple[tuple[str, str, int, int], ...] = ()

    @property
    def uuid(self) -> str:
        return f"GPU-{self.node}-{self.index}"


def dcgm_page(cards: Iterable[Card]) -> str:
    """The page in dcgm-exporter's format: family by family, with pod labels only on cards that a
    pod holds. Memory is in MiB; there is no total.
    """
    cards = list(cards)
    families: dict[str, Callable[[Card], int]] = {
        "DCGM_FI_DEV_GPU_UTIL": lambda card: card.duty,
        "DCGM_FI_DEV_FB_USED": lambda card: card.used_mib,
        "DCGM_FI_DEV_FB_FREE": lambda card: card.total_mib - card.used_mib - 512,
        "DCGM_FI_DEV_FB_RESERVED": lambda card: 512,
    }
    lines = []
    for name, value in families.items():
        lines += [f"# HELP {name} As the device reports.", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{_dcgm_labels(card)}}} {value(card)}" for card in cards]
    return "\n".join(lines) + "\n"


def _dcgm_labels(card: Card) -> str:
    labels = {
        "gpu": str(card.index),
        "UUID": card.uuid,
        "device": f"nvidia{card.index}",
        "modelName": "NVIDIA A100",
        "Hostname": card.node,
    }
    if card.pod:
        labels |= {"container": "main", "namespace": card.pod[0], "pod": card.pod[1]}
    return _labels(labels)


def nvidia_page(cards: Iterable[Card]) -> str:
    """The page in the format of the reference's exporter: one series of the device, and one more
    for each pod that shares it. Memory is in bytes.
    """
    cards = list(cards)
    lines = []
    for name, place, factor in (
        ("duty_cycle", 0, 1),
        ("memory_used_bytes", 1, MIB),
        ("memory_total_bytes", 2, MIB),
    ):
        lines.append(f"# TYPE nvidia_gpu_{name} gauge")
        for card in cards:
            value = (card.duty, card.used_mib, card.total_mib)[place]
            mode = "exclusive" if card.pod else "none"
            lines.append(
                f"nvidia_gpu_{name}{{{_nvidia_labels(card, mode, card.pod or ('', ''))}}} "
                f"{value * factor}"
            )
            for namespace, pod, duty, used in card.sharers if place < 2 else ():
                lines.append(
                    f"nvidia_gpu_{name}{{{_nvidia_labels(card, 'share', (namespace, pod))}}} "
                    f"{(duty, used)[place] * factor}"
                )
    return "\n".join(lines) + "\n"


def _nvidia_labels(card: Card, mode: str, pod: tuple[str, str]) -> str:
    return _labels(
        {
            "allocate_mode": mode,
            "container_name": "main" if pod[1] else "",
            "minor_number": str(card.index),
            "name": "Tesla-T4",
            "namespace_name": pod[0],
            "node_name": card.node,
            "pod_name": pod[1],
            "uuid": card.uuid,
        }
    )


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


@contextmanager
def served(page: str | Callable[[], str]) -> Iterator[str]:
    """The `host:port` at which the page, with its current contents, can be scraped during the
    block.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (page if isinstance(page, str) else page()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the messages do not belong in a test's output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
