"""Requests to Prometheus and its answers as values, for the async and the blocking client.

Sample values are JSON strings (`"NaN"`, `"+Inf"`), times are seconds with fractions. A range answer
has no points where there is no data, so this module adds the gaps.
"""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from fairlead.edge.connection.decoders import decoder_of
from fairlead.errors import OutsideError

SYSTEM = "prometheus"
TIMEOUT_SECONDS = 10.0
QUERY_PATH = "/api/v1/query"
RANGE_PATH = "/api/v1/query_range"
VERSION_PATH = "/api/v1/status/buildinfo"


class PrometheusFailure(OutsideError):
    """No usable answer. `status` is HTTP's; 0 = there was no answer."""

    def __init__(self, what: str, hint: str = "", *, status: int = 0) -> None:
        super().__init__(SYSTEM, what, hint)
        self.status = status


class PrometheusSample(Struct, frozen=True, gc=False):
    """One value of an instant query; `value` may be NaN or infinite."""

    labels: dict[str, str]
    at: float
    value: float


class SampleRow(Struct, frozen=True, gc=False):
    """One line of a range query: (epoch seconds, value or None for a gap)."""

    labels: dict[str, str]
    points: tuple[tuple[float, float | None], ...]


class _Series(Struct, gc=False):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


class _Data(Struct, rename={"result_type": "resultType"}):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw()


class _Version(Struct, frozen=True):
    version: str = ""


class _BuildInfo(Struct, frozen=True):
    data: _Version = _Version()


class _Answer(Struct, rename="camel"):
    status: str = ""
    data: _Data | None = None
    error_type: str | None = None
    error: str | None = None
    warnings: list[str] | None = None


def instant_form(promql: str, at: float | None) -> bytes:
    return urlencode({"query": promql} | ({} if at is None else {"time": f"{at:.3f}"})).encode()


def range_form(promql: str, start: float, end: float, step: float) -> bytes:
    return urlencode(
        {"query": promql, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
    ).encode()


def parse_instant(address: str, status: int, body: bytes) -> list[PrometheusSample]:
    """Samples of a vector or a scalar. Raises PrometheusFailure."""
    data = _data_of(address, status, body)
    if data.result_type == "scalar":
        at, text = _decode(address, data, tuple[float, str])
        return [PrometheusSample({}, at, float(text))]
    return [
        PrometheusSample(each.metric, each.value[0], float(each.value[1]))
        for each in _decode(address, data, list[_Series])
        if each.value
    ]


def parse_range(address: str, status: int, body: bytes, step: float) -> list[SampleRow]:
    """Lines of a matrix. Raises PrometheusFailure."""
    data = _data_of(address, status, body)
    return [
        SampleRow(each.metric, with_gaps(each.values, step))
        for each in _decode(address, data, list[_Series])
    ]


def with_gaps(
    values: list[tuple[float, str]], step: float
) -> tuple[tuple[float, float | None], ...]:
    """Points with None for each gap and each value that is no number: a chart's line breaks there.

    >>> with_gaps([(0, "1"), (15, "NaN"), (60, "3")], 15.0)
    ((0, 1.0), (15, None), (30.0, None), (60, 3.0))
    """
    points: list[tuple[float, float | None]] = []
    for at, text in values:
        if points and at - points[-1][0] > 1.5 * step:
            points.append((points[-1][0] + step, None))
        value = float(text)
        points.append((at, value if math.isfinite(value) else None))
    return tuple(points)


def _data_of(address: str, status: int, body: bytes) -> _Data:
    try:
        answer: _Answer = decoder_of(_Answer).decode(body)
    except msgspec.MsgspecError as error:
        raise _failure(address, status, body, f"not Prometheus' JSON ({error})") from error
    if answer.status != "success" or answer.data is None:
        raise _failure(address, status, body, answer.error or "no reason given")
    return answer.data


def _decode(address: str, data: _Data, type: Any) -> Any:
    try:
        return decoder_of(type).decode(data.result)
    except msgspec.MsgspecError as error:
        raise PrometheusFailure(
            f"Prometheus `{address}` answered with a `{data.result_type}` that cannot be read: "
            f"{error}"
        ) from error


def _failure(address: str, status: int, body: bytes, words: str) -> PrometheusFailure:
    hint = "check the Prometheus address"
    if status in (401, 403):
        hint = "check the Prometheus token, or the user and password in its address"
    elif status in (400, 422):
        hint = "check the expression"
    if body[:1] not in (b"{", b""):
        words = f"{' '.join(body[:300].decode('utf-8', 'replace').split())[:150]}"
    return PrometheusFailure(
        f"Prometheus `{address}` answered {status}: {words}", hint, status=status
    )


def parse_version(status: int, body: bytes) -> str:
    """The version in the answer of `/api/v1/status/buildinfo`; "" if unknown.

    It is unknown without that page, or if another program answers.

    >>> parse_version(200, b'{"status":"success","data":{"version":"2.42.0"}}')
    '2.42.0'
    >>> parse_version(404, b"404 page not found")
    ''
    """
    try:
        return decoder_of(_BuildInfo).decode(body).data.version if status == 200 else ""
    except ValueError:
        return ""
