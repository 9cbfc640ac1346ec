"""`fairlead bundle push` to a real registry: without and with TLS, with users, with tokens, that
goes away in between; and what must not be pushed.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.command import Printed, run_command
from tests.edge.pki import Authority
from tests.kube.certificates import KeyPair
from tests.kube.image_registry import (
    PASSWORD,
    USER,
    ImageRegistry,
    digest,
    image_registry,
    token_server,
)

from fairlead.edge.registry.address import registry_address
from fairlead.edge.registry.push import TRIES, BundlePush
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.snapshot import ClusterSnapshot

TOOLS = Path(__file__).resolve().parents[2] / "tools"
if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))

from build_image import project_version  # noqa: E402
from bundle import bundle_files, write_bundle  # noqa: E402
from image.layers import Layer  # noqa: E402
from image.oci_archive import STARTS, OciLayout  # noqa: E402

VERSION = project_version()
NAMES = [f"{start.name}:{VERSION}" for start in STARTS]


def write_archive(path: Path, folder: Path) -> None:
    """Both images for two architectures; one layer is that of both, as in `make image`."""
    layout = OciLayout(VERSION)
    layers = {}
    chance = random.Random(7)
    shared = layer(folder / "shared", chance.randbytes(3 << 20))
    for architecture in ("amd64", "arm64"):
        own = layer(folder / architecture, chance.randbytes(1 << 16))
        layers[architecture] = (shared, own)
    for start in STARTS:
        layout.add(start, layers)
    layout.write(path)


def layer(blob: Path, content: bytes) -> Layer:
    blob.write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    return Layer(blob.name, blob, found, len(content), found)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    for ending in ("-amd64.cdx.json", ".tgz", "-py3-none-any.whl"):
        (folder / f"fairlead-{VERSION}{ending}").write_bytes(ending.encode())
    write_archive(folder / f"fairlead-{VERSION}.oci.tar", tmp_path_factory.mktemp("layers"))
    (folder / "objects.yaml").write_text("kind: List\n", encoding="utf-8")
    return write_bundle(folder, VERSION, bundle_files(folder, [], folder / "objects.yaml"))


@pytest.fixture
def password(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    return tmp_path / "password"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[ImageRegistry]:
    """Without users and TLS."""
    with image_registry(tmp_path / "registry") as made:
        yield made


def certificates(folder: Path) -> tuple[Path, KeyPair]:
    """The file of an authority, and a certificate of it for a server on loopback."""
    authority = Authority()
    pair = authority.issue("registry")
    made = KeyPair(folder / "server.pem", folder / "server.key")
    made.certificate.write_bytes(pair.certificate_pem)
    made.key.write_bytes(pair.key_pem)
    (folder / "authority.pem").write_bytes(authority.pem)
    return folder / "authority.pem", made


def push(bundle: Path, *words: str) -> Printed:
    return run_command(
        " ".join(["bundle push", str(bundle), *words]), ClusterSnapshot(), "fairlead"
    )


def refused(bundle: Path, *words: str) -> FairleadError:
    with pytest.raises(FairleadError) as caught:
        push(bundle, *words)
    return caught.value


def endings(printed: Printed) -> list[str]:
    """What became of each blob."""
    return [
        line.split("MiB  ")[1] for line in printed.out.splitlines() if line.startswith("sha256")
    ]


def check_image(registry: ImageRegistry, repository: str) -> None:
    """Everything that its index names can be read, and is what its digest names."""
    text = registry.get(f"/v2/{repository}/manifests/{VERSION}")
    rows = json.loads(text)["manifests"]
    assert [row["platform"]["architecture"] for row in rows] == ["amd64", "arm64"]
    for row in rows:
        kind = row["mediaType"]
        manifest = registry.get(f"/v2/{repository}/manifests/{row['digest']}", kind)
        assert digest(manifest) == row["digest"]
        parts = json.loads(manifest)
        for part in (parts["config"], *parts["layers"]):
            assert (
                digest(registry.get(f"/v2/{repository}/blobs/{part['digest']}")) == part["digest"]
            )


def test_both_images_are_there_and_a_second_push_sends_nothing(
    bundle: Path, registry: ImageRegistry
) -> None:
    printed = push(bundle, f"http://{registry.host}/team/gpu")
    assert printed.status == 0
    # of each image two configurations and three layers, one of them for both architectures
    assert Counter(endings(printed)) == {"sent": 7, "taken over": 3, "there": 2}
    assert registry.stored() == {f"team/gpu/{name}" for name in NAMES}
    for start in STARTS:
        check_image(registry, f"team/gpu/{start.name}")
    pushed = [line for line in printed.out.splitlines() if line.startswith("pushed ")]
    assert pushed == [f"pushed {registry.host}/team/gpu/{name}" for name in NAMES]
    assert printed.out.endswith(f"--set image={registry.host}/team/gpu/{NAMES[0]}`\n")
    assert set(endings(push(bundle, f"http://{registry.host}/team/gpu"))) == {"there"}


def test_an_interrupted_push_leaves_no_name_and_goes_on(
    bundle: Path, registry: ImageRegistry
) -> None:
    made = BundlePush(registry_address(f"http://{registry.host}"))

    def interrupted(blob: str, size: int, ending: str) -> None:
        if size > 1 << 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.push(str(bundle), interrupted)
    assert registry.stored() == set()
    seen: dict[int, str] = {}
    made.push(str(bundle), lambda blob, size, ending: seen.setdefault(size, ending) and None)
    assert seen[3 << 20] == "there"
    assert seen[1 << 16] == "sent"
    assert registry.stored() == set(NAMES)


def test_a_registry_that_is_away_for_a_moment_is_tried_again(
    bundle: Path, registry: ImageRegistry
) -> None:
    waits: list[float] = []

    def again(seconds: float) -> None:
        waits.append(seconds)
        registry.start()

    made = BundlePush(registry_address(f"http://{registry.host}"), again)

    def lost(blob: str, size: int, ending: str) -> None:
        if not waits:
            registry.component.stop()

    assert len(made.push(str(bundle), lost)) == len(NAMES)
    assert len(waits) == 1
    assert registry.stored() == set(NAMES)

    waits.clear()
    gone = BundlePush(registry_address(f"http://{registry.host}"), waits.append)
    with pytest.raises(OutsideError) as caught:
        gone.push(str(bundle), lost)
    assert caught.value.what == f"the registry `http://{registry.host}` refused the connection"
    assert len(waits) == TRIES - 1 and caught.value.hint


def test_a_damaged_bundle_is_not_pushed(
    bundle: Path, registry: ImageRegistry, tmp_path: Path
) -> None:
    data = bytearray(bundle.read_bytes())
    with tarfile.open(bundle) as tar:
        (place,) = [each.offset_data for each in tar if each.name.endswith(".oci.tar")]
    data[place + (2 << 20)] ^= 1
    (tmp_path / "damaged.tar").write_bytes(data)
    assert "1 file is not as" in refused(tmp_path / "damaged.tar", f"http://{registry.host}").what
    assert registry.stored() == set()
    assert not registry.folder.exists()


def test_users_and_authorities(bundle: Path, password: Path, tmp_path: Path) -> None:
    authority, pair = certificates(tmp_path)
    with image_registry(tmp_path / "closed", tls=pair, has_users=True) as registry:
        host, words = registry.host, [f"--username={USER}", f"--password-file={password}"]
        unknown = refused(bundle, host, *words)
        assert "certificate" in unknown.what and unknown.hint
        trusts = f"--ca-file={authority}"
        assert "TLS" in (plain := refused(bundle, f"http://{host}")).what or "400" in plain.what
        nameless = refused(bundle, host, trusts)
        assert "wants a user: it answers 401" in nameless.what
        assert "--username" in nameless.hint
        (tmp_path / "wrong").write_text("wrong", encoding="utf-8")
        wrong = refused(
            bundle, host, trusts, f"--username={USER}", f"--password-file={tmp_path / 'wrong'}"
        )
        assert "does not accept this user: it answers 401" in wrong.what
        assert registry.stored() == set()
        assert push(bundle, host, trusts, *words).status == 0
        assert registry.stored() == set(NAMES)


def test_a_registry_that_sends_elsewhere_for_a_token(
    bundle: Path, password: Path, tmp_path: Path
) -> None:
    authority, pair = certificates(tmp_path)
    with token_server(pair, authority) as tokens:
        with image_registry(tmp_path / "tokens", auth=tokens.auth) as registry:
            words = [f"--username={USER}", f"--password-file={password}"]
            assert "not given: it answers 401" in refused(bundle, f"http://{registry.host}").what
            printed = push(bundle, f"http://{registry.host}", *words)
            assert endings(printed).count("taken over") == 3
            assert registry.stored() == set(NAMES)
            assert {"repository:fairlead:pull,push", "repository:fairlead:push,pull"} & {
                scope for asked in tokens.scopes for scope in asked
            }
        with image_registry(tmp_path / "tls", tls=pair, auth=tokens.auth) as registry:
            tokens.scopes.clear()
            unsafe = refused(bundle, registry.host, f"--ca-file={authority}", *words)
            assert "for a token, which is not https" in unsafe.what
            assert tokens.scopes == [], "no password was sent"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["ftp://registry"], "`ftp://registry` is no address of a registry"),
        (["https://"], "`https://` is no address of a registry"),
        (["registry:port"], "`registry:port` is no address of a registry"),
        (["registry/Team"], "`Team` cannot be a part of an image's name"),
        (["registry/a:1"], "`a:1` cannot be a part of an image's name"),
        (["registry/../a"], "`..` cannot be a part of an image's name"),
        (["registry", "--username=a"], "--username needs --password-file"),
        (["registry", "--password-file=a"], "--password-file needs --username"),
        (["http://registry", "--ca-file=a"], "a registry without TLS has no authority"),
        (["https://ann:secret@registry"], "contains a user"),
    ],
)
def test_what_is_no_address_is_refused_before_the_bundle_is_read(
    tmp_path: Path, words: list[str], what: str
) -> None:
    error = refused(tmp_path / "absent.tar", *words)
    assert isinstance(error, UserError)
    assert what in error.what and "secret" not in error.what
    assert error.hint
