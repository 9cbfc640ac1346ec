"""Signing in at `fairlead up`: the printed address has the code, and commands need none."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.cli.arena import environment, run_main
from tests.run.laptop import BARE, Laptop, kubeconfig_of
from tests.waiting import HANG_SECONDS, wait_until


def ask(url: str, body: Any = None, **headers: str) -> tuple[int, Any, str]:
    """Status, JSON, and the cookie that was set."""
    data = json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(asked, timeout=HANG_SECONDS) as found:
            cookie = (found.headers["Set-Cookie"] or "").partition(";")[0]
            return found.status, json.load(found), cookie
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), ""


def codes_of(laptop: Laptop, page: str) -> list[str]:
    """The codes that were printed with the console's address."""
    return re.findall(rf"{re.escape(page)}#code=(\S+)", laptop.output())


def token_for(kubeconfig: dict[str, Any], seconds: int) -> str:
    """Of a ServiceAccount that no user has."""
    cluster = kubeconfig["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    asked = urllib.request.Request(
        f"{cluster['server']}/api/v1/namespaces/default/serviceaccounts/default/token",
        json.dumps({"spec": {"expirationSeconds": seconds}}).encode(),
        {
            "Authorization": f"Bearer {kubeconfig['users'][0]['user']['token']}",
            "Content-Type": "application/json",
        },
    )
    trust = ssl.create_default_context(cadata=authority)
    with urllib.request.urlopen(asked, context=trust, timeout=HANG_SECONDS) as found:
        return str(json.load(found)["status"]["token"])


def test_the_code_signs_the_administrator_in_and_commands_still_move_time(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path, *BARE, is_open=False)
    try:
        page = laptop.wait_ready()["console"]
        assert "#" not in page, "no program needs the code"
        [printed] = codes_of(laptop, page)
        assert ask(f"{page}api/v1/overview")[1]["code"] == "signed-out"
        order = {"way": "code", "secret": printed}
        status, _, cookie = ask(f"{page}api/v1/signin", order)
        assert status == 200
        me = ask(f"{page}api/v1/me", Cookie=cookie)[1]
        assert (me["user"]["role"], me["way"]) == ("admin", "code")
        assert ask(f"{page}api/v1/signin", order)[0] == 401
        wait_until("a new code is printed", lambda: len(codes_of(laptop, page)) == 2, 30)
        order = {"way": "code", "secret": codes_of(laptop, page)[-1]}
        assert ask(f"{page}api/v1/signin", order)[0] == 200
        moved = run_main("fairlead", ("time", "pause"), environment(laptop.home))
        assert moved.returncode == 0, moved.stderr
        assert "paused" in moved.stdout

        kubeconfig = kubeconfig_of({"kubeconfig": str(laptop.wait_ready()["kubeconfig"])})
        token = token_for(kubeconfig, seconds=600)
        bearer = {"Authorization": f"Bearer {token}"}
        assert ask(f"{page}api/v1/me", **bearer)[1]["code"] == "no-user"
        moved = run_main("fairlead", ("time", "advance", "11m"), environment(laptop.home))
        assert moved.returncode == 0, moved.stderr
        wait_until(
            "the token has expired",
            lambda: (
                ask(f"{page}api/v1/me", **bearer)[1]["error"]
                == "the API server does not accept this token: it has expired"
            ),
            60,
        )
    finally:
        laptop.close()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--listen=0.0.0.0:0",), "without sign-in, every client that reaches `0.0.0.0` would"),
        (("--oidc-issuer=https://sso.example",), "--oidc-issuer has no effect without sign-in"),
        (
            ("--sign-in=on", "--oidc-issuer=http://sso.example", "--oidc-client-id=a"),
            "the issuer `http://sso.example` is no https address",
        ),
        (("--sign-in=on", "--oidc-issuer=https://sso.example"), "the OpenID Connect client has no"),
        (("--sign-in=on", "--trusted-proxy=proxy"), "`proxy` is no address of a proxy"),
        (("--sign-in=on", "--external-url=gpu.example"), "`gpu.example` is no address of a page"),
        (("--sign-in=on", "--sign-in-key-file=/nowhere"), "the key `/nowhere` cannot be read"),
        (("--sign-in=on", "--sign-in-key-file=/dev/null"), "the key `/dev/null` has 0 bytes"),
        (("--sign-in=on", "--store=oracle://a"), "`oracle` is no engine of a store"),
    ],
)
def test_flags_that_cannot_be_meant_end_with_a_sentence(
    tmp_path: Path, flags: tuple[str, ...], message: str
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: a, cluster: {server: http://127.0.0.1:1}}]\n"
        "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
    )
    words = ("console", f"--kubeconfig={config}", "--listen=127.0.0.1:0", *flags)
    ended = run_main("fairlead", words, environment(tmp_path))
    assert ended.returncode == 1
    assert message in ended.stderr
    assert "hint: " in ended.stderr


def test_the_own_key_is_made_for_its_user_alone(tmp_path: Path) -> None:
    from fairlead.edge.files.sign_in_key import own_key
    from fairlead.errors import UserError

    env = {"XDG_STATE_HOME": str(tmp_path)}
    made = own_key(env)
    assert len(made) == 32 and own_key(env) == made
    path = tmp_path / "fairlead" / "sign-in.key"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(UserError) as caught:
        own_key(env)
    assert caught.value.what == f"other users may read the key `{path}` (mode 0640)"
