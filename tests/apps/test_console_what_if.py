"""`POST /quota/what-if` over HTTP: the answer matches its description, the request is guarded like
a write, and nothing is written.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.apps.described_answers import check_against
from tests.apps.running_console import Page, console
from tests.console.quota_demo import crowded, poor
from tests.console.worlds import still_world

from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.openapi import openapi_document

RAISED = {"changes": [{"node": "root.b.1", "resource": "cpu", "min": "10"}]}
PATH = BASE + "/quota/what-if"


async def headers_of(page: Page) -> dict[str, str]:
    csrf = (await page.json("/me"))["csrf"]
    return {
        "X-Fairlead-Csrf": csrf,
        "Content-Type": "application/json",
        "Origin": page.url,
        "Sec-Fetch-Site": "same-origin",
    }


async def test_the_answer_has_exactly_the_keys_that_it_describes() -> None:
    async with console(still_world(crowded(poor()))) as page:
        status, _, body = await page.get(
            PATH, method="POST", data=json.dumps(RAISED).encode(), headers=await headers_of(page)
        )
    assert status == 200
    described = openapi_document("0")
    schema = described["paths"]["/quota/what-if"]["post"]["responses"]["200"]["content"][
        "application/json"
    ]["schema"]
    answer: dict[str, Any] = json.loads(body)
    check_against(answer, schema, described["components"]["schemas"])
    assert (answer["admittedCount"], answer["evictedCount"]) == (2, 2)


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"X-Fairlead-Csrf": ""}, 403, "csrf"),
        ({"Origin": "http://evil.example"}, 403, "csrf"),
        ({"Content-Type": "text/plain"}, 415, "media-type"),
    ],
)
async def test_it_is_guarded_like_a_write(change: dict[str, str], status: int, code: str) -> None:
    async with console(still_world(crowded(poor()))) as page:
        given, _, body = await page.get(
            PATH,
            method="POST",
            data=json.dumps(RAISED).encode(),
            headers={**await headers_of(page), **change},
        )
    assert (given, json.loads(body)["code"]) == (status, code)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        '{"changes": 1}',
        ('{"changes": [{"node": "root.z", "resource": "cpu", "min": "1"}]}'),
    ],
)
async def test_what_is_no_question_is_malformed(body: str) -> None:
    async with console(still_world(crowded(poor()))) as page:
        status, _, answer = await page.get(
            PATH, method="POST", data=body.encode(), headers=await headers_of(page)
        )
    assert (status, json.loads(answer)["code"]) == (400, "malformed")
    assert json.loads(answer)["hint"]


async def test_it_cannot_be_read() -> None:
    async with console(still_world(crowded(poor()))) as page:
        status, headers, body = await page.get(PATH)
    assert (status, headers["Allow"]) == (405, "POST")
    assert json.loads(body)["hint"] == "use POST"
