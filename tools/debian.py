"""The Debian packages that the tests need, installed where this is Debian and we are root."""

from __future__ import annotations

import os
import platform
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from locks import only_one
from progress import StepFailed, cache_home, run_step, say, spoken_seconds


@dataclass(frozen=True)
class Package:
    """A Debian package and how to see that it is there: a program on PATH, or a file, whose path
    may have `*`.
    """

    name: str
    program: str = ""
    file: str = ""

    @property
    def is_installed(self) -> bool:
        if self.program:
            return shutil.which(self.program) is not None
        return any(Path("/").glob(self.file.removeprefix("/")))


_TRIPLET = sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu"
PROMETHEUS = Package("prometheus", program="prometheus")
CHROMIUM = Package("chromium-headless-shell", program="chromium-headless-shell")
CHINESE_FONTS = Package(
    "fonts-noto-cjk", file="/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"
)
CONTAINERD = Package("containerd", program="containerd")
RUNC = Package("runc", program="runc")
CONTAINER_NETWORKS = Package("containernetworking-plugins", file="/usr/lib/cni/bridge")
NFTABLES = Package("nftables", program="nft")
IPTABLES = Package("iptables", program="iptables")
IPSET = Package("ipset", program="ipset")
BUSYBOX = Package("busybox-static", program="busybox")
NODE_PACKAGES = (CONTAINERD, RUNC, CONTAINER_NETWORKS, BUSYBOX)
"""What a kubelet needs to run containers, and what runs in them."""
ZSH = Package("zsh", program="zsh")
FISH = Package("fish", program="fish")
GROFF = Package("groff-base", program="groff")
FAKE_TIME = Package("libfaketime", file=f"/usr/lib/{_TRIPLET}/faketime/libfaketime.so.1")
POSTGRESQL = Package("postgresql", file="/usr/lib/postgresql/*/bin/postgres")
MARIADB = Package("mariadb-server-core", file="/usr/sbin/mariadbd")
MARIADB_INSTALL = Package("mariadb-client-core", file="/usr/bin/my_print_defaults")
"""The server needs it to make a folder of data."""
DATABASES = (POSTGRESQL, MARIADB, MARIADB_INSTALL)
C_COMPILER = Package("gcc", program="cc")
C_HEADERS = Package("libc6-dev", file="/usr/include/stdio.h")
_CROSS = {
    "x86_64": (
        Package("gcc-aarch64-linux-gnu", program="aarch64-linux-gnu-gcc"),
        Package("libc6-dev-arm64-cross", file="/usr/aarch64-linux-gnu/include/stdio.h"),
    ),
    "aarch64": (
        Package("gcc-x86-64-linux-gnu", program="x86_64-linux-gnu-gcc"),
        Package("libc6-dev-amd64-cross", file="/usr/x86_64-linux-gnu/include/stdio.h"),
    ),
}
CROSS_PACKAGES = _CROSS.get(platform.machine(), ())
"""What builds the memory guard for machines of the other architecture."""
MUSL = Package("musl-tools", program="musl-gcc")
"""The other C library: a program on it goes around the memory guard."""
_OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}.get(platform.machine(), "")
EMULATOR = Package("qemu-user-static", program=f"qemu-{_OTHER}-static")
"""Runs programs of the other architecture's image."""
PACKAGES = (
    PROMETHEUS,
    CHROMIUM,
    CHINESE_FONTS,
    ZSH,
    FISH,
    GROFF,
    FAKE_TIME,
    C_COMPILER,
    C_HEADERS,
    *CROSS_PACKAGES,
    MUSL,
    EMULATOR,
    *DATABASES,
    *NODE_PACKAGES,
    NFTABLES,
)


def install_missing(packages: tuple[Package, ...] = PACKAGES) -> None:
    """Install what is missing where that is allowed.

    Prints what it does, and nothing where it is not allowed.
    """
    missing = [package.name for package in packages if not package.is_installed]
    if not missing or not may_install():
        return
    with only_one(cache_home() / "debian.lock", "Debian packages"):
        say(f"installing Debian packages: {', '.join(missing)}")
        log = cache_home() / "logs" / "debian.log"
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        seconds = run_step("apt-get update", ["apt-get", "update", "-q"], log, env=environment)
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
        seconds += run_step("apt-get install", install, log, env=environment)
        say(f"installed them in {spoken_seconds(seconds)}")


def may_install() -> bool:
    """Whether this is a Debian (or a child of it), and we are root."""
    return (
        os.geteuid() == 0
        and Path("/etc/debian_version").exists()
        and shutil.which("apt-get") is not None
    )


def why_missing(packages: tuple[Package, ...]) -> tuple[str, str] | None:
    """None where all are there; else the reason for a person and the command that mends it."""
    missing = [package.name for package in packages if not package.is_installed]
    if not missing:
        return None
    return f"no {', '.join(missing)}", f"apt-get install {' '.join(missing)}"


def try_install(packages: tuple[Package, ...] = PACKAGES) -> None:
    """Install what is missing; print a failure.

    The groups that need it are then skipped with their reason.
    """
    try:
        install_missing(packages)
    except StepFailed as failed:
        say(f"warning: {failed.what}")
