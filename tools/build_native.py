"""Builds the C parts: the memory guard, and the stub of NVIDIA's driver that its tests use.

`python3 tools/build_native.py` prints where the libraries are. They are kept under the cache by
what they are made of, so an unchanged source is compiled once per machine. Two builds with one
compiler are the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from guard_table import (
    NATIVE,
    GuardTable,
    header,
    link_table,
    read_table,
    stub_exports,
    version_script,
    wrappers,
)
from progress import StepFailed, cache_home

GUARD_LIBRARY = "libfairlead-guard.so"
STRICT = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-pipe")
FIRST_VERSION = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}


@dataclass(frozen=True)
class Built:
    """What a build is for. `macros` and `options` go to the compiler. `c_library`: `glibc`, or
    `musl` on this machine's architecture.
    """

    architecture: str = platform.machine()
    macros: tuple[str, ...] = ()
    options: tuple[str, ...] = ("-O2",)
    c_library: str = "glibc"

    @property
    def compiler(self) -> str:
        if self.c_library == "musl":
            return "musl-gcc"
        own = self.architecture == platform.machine()
        return "cc" if own else f"{self.architecture}-linux-gnu-gcc"


def build_guard(build: Built = Built(), table: GuardTable | None = None) -> Path:
    """The path of the library. Raises StepFailed with what the compiler printed."""
    table = table or read_table()
    first = FIRST_VERSION[build.architecture]
    generated = {
        "hooks.h": header(table),
        "hooks.c": wrappers(table),
        "guard.map": version_script(first),
    }
    sources = sorted(path for path in (NATIVE / "guard").iterdir() if path.suffix in (".c", ".S"))
    headers = [*sorted((NATIVE / "guard").glob("*.h")), NATIVE / "driver.h"]

    def compile_into(folder: Path) -> None:
        for name, text in generated.items():
            (folder / name).write_text(text, encoding="utf-8")
        # Stripped, because local symbols contain names of the compiler's temporary files.
        link = (
            "-Wl,--version-script=guard.map",
            "-Wl,-z,relro,-z,now",
            "-Wl,--build-id=none",
            "-Wl,--strip-all",
        )
        run_compiler(
            build,
            folder,
            (*link, "-nostartfiles", "-ftls-model=initial-exec", f"-Wl,-soname,{GUARD_LIBRARY}"),
            (*map(str, sources), "hooks.c"),
            GUARD_LIBRARY,
        )

    return kept(
        "guard",
        GUARD_LIBRARY,
        (
            compiler_version(build.compiler),
            str(build),
            *generated.values(),
            *_contents([*sources, *headers]),
        ),
        compile_into,
    )


def build_region(build: Built) -> Path:
    """Account and limits, as a library that a test steps store by store."""
    sources = [NATIVE / "guard" / name for name in ("region.c", "process.c", "limits.c")]
    sources.append(NATIVE / "steps" / "steps.c")
    headers = sorted((NATIVE / "guard").glob("*.h"))

    def compile_into(folder: Path) -> None:
        run_compiler(build, folder, (), tuple(map(str, sources)), "libregion.so")

    return kept(
        "region", "libregion.so", (str(build), *_contents([*sources, *headers])), compile_into
    )


def build_checked(sanitizers: str) -> Path:
    """A program that runs parts of the guard under the compiler's sanitizers, or without any."""
    checks = (f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all") if sanitizers else ()
    build = Built(options=("-O1", "-g", *checks))
    names = ("limits", "table", "region", "process")
    sources = [*(NATIVE / "guard" / f"{name}.c" for name in names), NATIVE / "steps" / "checked.c"]
    headers = sorted((NATIVE / "guard").glob("*.h"))

    def compile_into(folder: Path) -> None:
        run_compiler(
            build, folder, ("-pthread",), tuple(map(str, sources)), "checked", is_shared=False
        )

    parts = (str(build), *_contents([*sources, *headers]))
    return kept("checked", "checked", parts, compile_into)


def build_hooked(sources: Path, sanitizers: str) -> Path:
    """A test's program as of `build_tenant` that contains the guard, under the compiler's
    sanitizers: their runtime and a library that is preloaded would each have to be the first.
    """
    checks = (f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all")
    build = Built(macros=("GUARD_MUTABLE", "dlsym=hooked_dlsym"), options=("-O1", "-g", *checks))
    table = read_table()
    library = build_stub() / "libcuda.so.1"
    generated = {
        "hooks.h": header(table),
        "hooks.c": wrappers(table),
        "linked.c": link_table(table, is_linked=True),
    }
    written = [*sorted((NATIVE / "guard").glob("*.c")), NATIVE / "steps" / "hooked.c"]
    written += sorted(sources.glob("*.c"))
    headers = [*sorted((NATIVE / "guard").glob("*.h")), NATIVE / "driver.h", *sources.glob("*.h")]

    def compile_into(folder: Path) -> None:
        for name, text in generated.items():
            (folder / name).write_text(text, encoding="utf-8")
        link = (f"-I{sources}", "-pthread", "-ldl")
        files = (*map(str, written), "hooks.c", "linked.c", str(library))
        run_compiler(build, folder, link, files, "hooked", is_shared=False)

    parts = (str(build), str(library), *generated.values(), *_contents([*written, *headers]))
    return kept("hooked", "hooked", parts, compile_into)


def build_stub(build: Built = Built(), without: Sequence[str] = ()) -> Path:
    """The folder with the stub's `libcuda.so.1` and `libnvidia-ml.so.1`.

    `without`: functions that this driver lacks.
    """
    table = read_table()
    sources = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}
    truth = NATIVE / "stub" / "truth.c"
    texts = {name: (NATIVE / "stub" / f"{name}.c").read_text("utf-8") for name in sources}
    exports = {name: stub_exports(table, name, text) for name, text in texts.items()}
    headers = [*sorted((NATIVE / "stub").glob("*.h")), NATIVE / "driver.h", truth]

    def compile_into(folder: Path) -> None:
        hidden = "".join(f" {each};" for each in without)
        (folder / "exports.map").write_text(f"{{ local:{hidden} }};\n", encoding="utf-8")
        for name, library in sources.items():
            (folder / f"{name}_exports.c").write_text(exports[name], encoding="utf-8")
            link = ["-Wl,-Bsymbolic", f"-Wl,-soname,{library}", "-pthread", f"-I{truth.parent}"]
            link += ["-Wl,--version-script=exports.map"] if without else []
            written = (str(NATIVE / "stub" / f"{name}.c"), str(truth), f"{name}_exports.c")
            run_compiler(build, folder, link, written, library)

    parts = (str(build), *without, *exports.values(), *texts.values(), *_contents(headers))
    return kept("stub", ".", parts, compile_into)


def build_tenant(
    sources: Path, build: Built = Built(), *, is_linked: bool = True, stub: Path | None = None
) -> Path:
    """A test's program: the C files of a folder and a table of all hooked names, linked with the
    stub (in the folder `stub`, if given) or not.
    """
    stub = stub or build_stub(Built(build.architecture))
    links = link_table(read_table(), is_linked=is_linked)
    headers = [*sorted(sources.glob("*.h")), NATIVE / "driver.h"]
    written = sorted(sources.glob("*.c"))

    def compile_into(folder: Path) -> None:
        (folder / "linked.c").write_text(links, encoding="utf-8")
        link = (f"-I{sources}", "-pthread", "-ldl")
        files = [*map(str, written), "linked.c"]
        files += [str(stub / "libcuda.so.1")] if is_linked else []
        run_compiler(build, folder, link, files, "tenant", is_shared=False)

    parts = (str(build), links, str(stub), *_contents([*written, *headers]))
    return kept("tenant", "tenant", parts, compile_into)


def build_program(source: Path, build: Built = Built()) -> Path:
    """A program of one C file, linked with the stub."""
    library = build_stub() / "libcuda.so.1"
    text = source.read_text(encoding="utf-8")

    def compile_into(folder: Path) -> None:
        files = (str(source), str(library))
        run_compiler(build, folder, (), files, source.stem, is_shared=False)

    parts = (str(build), str(library), text, *_contents([NATIVE / "driver.h"]))
    return kept("program", source.stem, parts, compile_into)


def build_escape(sources: Path, build: Built, *, has_driver: bool) -> Path:
    """A program that goes around the guard, beside the libraries that it loads. With `has_driver`
    the stub is part of it, and there are no libraries.
    """
    stub = NATIVE / "stub"
    cuda = (stub / "cuda.c").read_text(encoding="utf-8")
    exports = stub_exports(read_table(), "cuda", cuda)
    libraries = sorted((sources / "libraries").glob("*.c"))
    written = [sources / "escape.c", stub / "truth.c", stub / "cuda.c"]
    headers = [*sorted(stub.glob("*.h")), NATIVE / "guard" / "region.h", NATIVE / "driver.h"]
    build = replace(build, macros=("ESCAPE_BUILT_IN",) if has_driver else ())

    def compile_into(folder: Path) -> None:
        (folder / "cuda_exports.c").write_text(exports, encoding="utf-8")
        link = (f"-I{stub}", "-pthread", "-ldl")
        if has_driver:
            files = (*map(str, written), "cuda_exports.c")
            run_compiler(build, folder, link, files, "escape", is_shared=False)
            return
        run_compiler(build, folder, link, [*map(str, written[:2])], "escape", is_shared=False)
        for library in libraries:
            files = (str(library), str(written[1]))
            run_compiler(build, folder, link, files, f"{library.stem}.so")

    parts = (str(build), str(has_driver), exports, *_contents([*written, *libraries, *headers]))
    return kept("escape", "escape", parts, compile_into)


def run_compiler(
    build: Built,
    folder: Path,
    link: Sequence[str],
    sources: Sequence[str],
    name: str,
    *,
    is_shared: bool = True,
) -> None:
    """Compile and link in a folder, with no path of this machine in the result."""
    places = ("-I.", f"-I{NATIVE / 'guard'}", f"-I{NATIVE}")
    hidden = (f"-ffile-prefix-map={NATIVE}=native", f"-ffile-prefix-map={folder}=build")
    macros = tuple(f"-D{macro}" for macro in build.macros)
    shape = ("-shared",) if is_shared else ()
    argv = (build.compiler, *shape, *STRICT, *build.options, *macros, *places, *hidden)
    done = subprocess.run(
        (*argv, "-o", name, *sources, *link),
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise StepFailed(f"{name} cannot be compiled:\n{done.stderr.strip()}")


def kept(
    folder: str, name: str, parts: Sequence[str], compile_into: Callable[[Path], None]
) -> Path:
    """The file under the cache that is made of `parts`; made now where it is absent."""
    digest = hashlib.sha256("\0".join((compiler_version(), *parts)).encode()).hexdigest()[:16]
    place = cache_home() / "native" / folder / digest
    path = place / name
    if path.exists():
        return path
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        compile_into(made)
        try:
            made.rename(place)
        except OSError:
            if not path.exists():  # else another process has made the same
                raise
    return path


def compiler_version(compiler: str = "cc") -> str:
    """The first line of its `--version`. Raises StepFailed where there is no such compiler."""
    if shutil.which(compiler) is None:
        raise StepFailed(f"there is no C compiler `{compiler}`: install gcc and libc6-dev")
    answer = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, timeout=30, check=True
    )
    return answer.stdout.partition("\n")[0]


def _contents(paths: Sequence[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in paths]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--architecture", choices=sorted(FIRST_VERSION), default=platform.machine())
    chosen = parser.parse_args(words)
    try:
        print(build_guard(Built(chosen.architecture)))
    except StepFailed as failed:
        print(f"error: {failed.what}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
