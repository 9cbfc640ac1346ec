"""The table of what the memory guard hooks, and what is generated from it.

`native/guard/hooks.toml` is the only place where a hooked name stands. From it come the wrappers
and the version script of the library, the answer to which wrapper a look-up of a CUDA runtime
gets, and docs/reference/gpu-guard.md.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from toolchains import REPOSITORY

NATIVE = REPOSITORY / "native"
TABLE = NATIVE / "guard" / "hooks.toml"
LOOKUPS = NATIVE / "lookups"
ESCAPES = NATIVE / "escapes.toml"
PER_THREAD = "_ptsz"
_ALLOCATOR = re.compile(r"cu(Mem|Array|Mipmapped).*(Alloc|Create)")
_NAME = re.compile(r"(\w+)$")
_DEFINITIONS = {"cuda": "CUresult", "nvml": "nvmlReturn_t"}


@dataclass(frozen=True)
class Hook:
    """One export with a wrapper. `since`: a version of CUDA as the driver counts, 12040 is 12.4."""

    export: str
    symbol: str
    since: int
    is_per_thread: bool
    library: str
    kind: str
    size: str
    logic: str
    parameters: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(_NAME.findall(parameter)[0] for parameter in self.parameters)

    @property
    def types(self) -> str:
        return ", ".join(_NAME.sub("", parameter).strip() for parameter in self.parameters)


@dataclass(frozen=True)
class Lookup:
    """One line of a golden list: what a runtime asks cuGetProcAddress for."""

    symbol: str
    version: int
    flags: int


@dataclass(frozen=True)
class Escape:
    """A way around the guard. `why`: what makes it possible."""

    name: str
    what: str
    why: str


@dataclass(frozen=True)
class GuardTable:
    """`untouched`: names that pass through, with the kind of each; `reasons`: why, by kind."""

    hooks: tuple[Hook, ...]
    untouched: dict[str, str]
    reasons: dict[str, str]
    helpers: dict[str, tuple[str, ...]]

    def classify(self, lookup: Lookup) -> Hook | str:
        """The hook whose wrapper the look-up gets, or the kind of an untouched name.

        Raises KeyError where the name is in neither list.
        """
        fitting = [
            hook
            for hook in self.hooks
            if hook.symbol == lookup.symbol and hook.since <= lookup.version
        ]
        asked = [hook for hook in fitting if hook.is_per_thread == (lookup.flags == 2)]
        if asked or fitting:
            return max(asked or fitting, key=lambda hook: hook.since)
        return self.untouched[lookup.symbol]


def read_table(path: Path = TABLE) -> GuardTable:
    """Raises ValueError where a name stands in the table twice."""
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    hooks = [hook for row in written["hook"] for hook in _forms(row)]
    untouched: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for row in written["untouched"]:
        reasons[row["kind"]] = row["why"]
        for name in row["names"]:
            if name in untouched or any(name == hook.symbol for hook in hooks):
                raise ValueError(f"`{name}` stands in hooks.toml twice")
            untouched[name] = row["kind"]
    if len({hook.export for hook in hooks}) != len(hooks):
        raise ValueError("an export stands in hooks.toml twice")
    ordered = tuple(sorted(hooks, key=lambda hook: hook.export))
    helpers = {library: tuple(names) for library, names in written["helpers"].items()}
    return GuardTable(ordered, untouched, reasons, helpers)


def _forms(row: dict[str, object]) -> list[Hook]:
    export = str(row["export"])
    parameters = row["parameters"]
    assert isinstance(parameters, list)
    form = Hook(
        export,
        str(row.get("symbol", export)),
        int(str(row.get("since", 0))),
        False,
        str(row.get("library", "cuda")),
        str(row["kind"]),
        str(row.get("size", "-")),
        str(row["logic"]),
        tuple(map(str, parameters)),
    )
    if "per_thread" not in row:
        return [form]
    since = int(str(row["per_thread"]))
    other = Hook(
        export + PER_THREAD,
        form.symbol,
        since,
        True,
        form.library,
        form.kind,
        form.size,
        form.logic,
        form.parameters,
    )
    return [form, other]


def read_escapes(path: Path = ESCAPES) -> tuple[Escape, ...]:
    """The ways around the guard, in the order of the file."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["escape"]
    return tuple(Escape(row["name"], row["what"], row["why"]) for row in rows)


def read_lookups(path: Path) -> list[Lookup]:
    """A file of native/lookups: `<symbol> v=<version> f=<flags>`; the first name is empty."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        symbol, version, flags = re.fullmatch(r"(\w*) v=(\d+) f=(\d+)", line).groups()  # type: ignore[union-attr]
        found.append(Lookup(symbol, int(version), int(flags)))
    return found


def header(table: GuardTable) -> str:
    """hooks.h: the hooks as numbers, and what the functions behind them look like."""
    lines = [
        "/* Written by tools/build_native.py from hooks.toml. */",
        "#ifndef FAIRLEAD_HOOKS_H",
        "#define FAIRLEAD_HOOKS_H",
        '#include "driver.h"',
        "enum library { LIBRARY_CUDA, LIBRARY_NVML };",
        "enum hook {",
        *(f"    HOOK_{hook.export}," for hook in table.hooks),
        "    HOOK_COUNT",
        "};",
        "enum helper {",
        *(f"    HELPER_{name}," for name in table.helpers["cuda"]),
        "    HELPER_NVML,",
        *(
            f"    HELPER_{name}{'' if at else ' = HELPER_NVML'},"
            for at, name in enumerate(table.helpers["nvml"])
        ),
        "    HELPER_COUNT",
        "};",
        "struct hook_row {",
        "    const char *name, *symbol;",
        "    void *wrapper;",
        "    int since;",
        "    int per_thread;",
        "    enum library library;",
        "};",
        "extern const struct hook_row hook_rows[HOOK_COUNT];",
        "extern void *hook_real[HOOK_COUNT];",
        "extern const char *const helper_names[HELPER_COUNT];",
        "extern const char *const known_allocators[];",
    ]
    for logic, hook in {hook.logic: hook for hook in table.hooks}.items():
        kind = _DEFINITIONS[hook.library]
        parameters = ", ".join(hook.parameters)
        lines.append(f"{kind} on_{logic}({kind} (*real)({hook.types}), {parameters});")
    return "\n".join((*lines, "#endif", ""))


def wrappers(table: GuardTable) -> str:
    """hooks.c: one exported function for each hook.

    Built with GUARD_MUTABLE, a hook that FAIRLEAD_GUARD_WITHOUT names does nothing.
    """
    lines = ["/* Written by tools/build_native.py from hooks.toml. */", '#include "guard.h"']
    lines += ["#ifdef GUARD_MUTABLE", "int guard_is_without(const char *name);"]
    lines += ["#else", "#define guard_is_without(name) 0", "#endif"]
    for hook in table.hooks:
        kind = _DEFINITIONS[hook.library]
        failed = "NVML_ERROR_FUNCTION_NOT_FOUND" if hook.library == "nvml" else "NO_DRIVER"
        passes = "" if hook.kind == "resolution" else "guard_state() == GUARD_INACTIVE || "
        arguments = ", ".join(hook.arguments)
        lines += [
            f"SHOWN {kind} {hook.export}({', '.join(hook.parameters)}) {{",
            f"    {kind} (*real)({hook.types}) =",
            f"        ({kind} (*)({hook.types}))resolve_real(HOOK_{hook.export});",
            "    if (!real) {",
            f"        return {failed};",
            "    }",
            f'    if ({passes}guard_is_without("{hook.export}")) {{',
            f"        return real({arguments});",
            "    }",
            f"    return on_{hook.logic}(real, {arguments});",
            "}",
        ]
    lines.insert(2, '#define SHOWN __attribute__((visibility("default")))')
    lines.insert(3, "enum { NO_DRIVER = CUDA_ERROR_OUT_OF_MEMORY };")
    lines.append("const struct hook_row hook_rows[HOOK_COUNT] = {")
    for hook in table.hooks:
        library = f"LIBRARY_{hook.library.upper()}"
        row = f'"{hook.export}", "{hook.symbol}", (void *){hook.export}, {hook.since}'
        lines.append(f"    {{{row}, {int(hook.is_per_thread)}, {library}}},")
    lines.append("};")
    lines.append("const char *const helper_names[HELPER_COUNT] = {")
    lines += [f'    "{name}",' for names in table.helpers.values() for name in names]
    lines.append("};")
    lines.append("const char *const known_allocators[] = {")
    lines += [f'    "{name}",' for name in table.untouched if _ALLOCATOR.match(name)]
    lines += ["    NULL,", "};", ""]
    return "\n".join(lines)


def version_script(first: str) -> str:
    """The versions of `dlsym` and `dlvsym`; all other exports have none, so that they serve a
    reference with any version.

    `first`: the C library's first version on the architecture, which names the older form.
    """
    return (
        f"{first} {{ global: dlsym; dlvsym; }};\nGLIBC_2.34 {{ global: dlsym; dlvsym; }} {first};\n"
    )


_NEEDED = re.compile(
    r"(?:CUgraph|CUgraphExec|CUmemoryPool) (\w+)"
    r"|(?!void)[\w ]+\*"
    r"(array|shape|context|bytes|exec|memory|handle|pointer|pitch|prop|node|parameters)"
)
"""Parameters for which a driver refuses NULL; others are optional, or checked by the stub."""


def _needed(parameter: str) -> list[str]:
    """The parameter's name, where the stub refuses NULL for it.

    >>> [_needed(each) for each in ("CUgraph graph", "CUarray *array", "void *parameters")]
    [['graph'], ['array'], []]
    """
    found = _NEEDED.fullmatch(parameter)
    return [name for name in found.groups() if name] if found else []


def stub_exports(table: GuardTable, library: str, written: str) -> str:
    """What the stub's library exports: a form of each `stub_LOGIC`, and a function without effect
    for every other name of the look-up lists. `written`: the stub's source.
    """
    kind = _DEFINITIONS[library]
    lines = ["/* Written by tools/build_native.py. */", '#include "stub.h"']
    lines.append('#define SHOWN __attribute__((visibility("default")))')
    own = re.findall(rf"^SHOWN {kind} (\w+)\(", written, re.MULTILINE)
    rows = [(name, 0, 0, name) for name in own if name.startswith("cu")]
    for name in own:
        lines.append(f"extern char {name}[];")
    for hook in table.hooks:
        if hook.library != library:
            continue
        rows.append((hook.symbol, hook.since, int(hook.is_per_thread), hook.export))
        if hook.kind == "resolution":
            continue
        parameters = ", ".join(hook.parameters)
        lines.append(f"{kind} stub_{hook.logic}({parameters});")
        lines.append(f"SHOWN {kind} {hook.export}({parameters}) {{")
        if library == "cuda":
            lines.append(f'    if (stub_refuses("{hook.export}", "{hook.kind}")) {{')
            lines += ["        return 999;", "    }"]
            needed = " || ".join(f"!{name}" for each in hook.parameters for name in _needed(each))
            if needed:
                lines.append(f"    if ({needed}) {{")
                lines += ["        return CUDA_ERROR_INVALID_VALUE;", "    }"]
        lines.append(f"    return stub_{hook.logic}({', '.join(hook.arguments)});")
        lines.append("}")
    if library == "cuda":
        symbols = {hook.symbol for hook in table.hooks}
        names = {
            lookup.symbol
            for path in sorted(LOOKUPS.glob("*.txt"))
            for lookup in read_lookups(path)
            if lookup.symbol and lookup.symbol not in (*own, *symbols)
        }
        for name in sorted(names):
            lines.append(f"SHOWN CUresult {name}(void) {{ return CUDA_SUCCESS; }}")
            rows.append((name, 0, 0, name))
        lines.append("const struct stub_row stub_rows[] = {")
        for symbol, since, per_thread, export in rows:
            lines.append(f'    {{"{symbol}", {since}, {per_thread}, (void *){export}}},')
        lines += ["    {NULL, 0, 0, NULL},", "};"]
    return "\n".join((*lines, ""))


def link_table(table: GuardTable, *, is_linked: bool) -> str:
    """What the test's tenant is linked with: every export by name; without addresses where it is
    not linked with the driver.
    """
    lines = [
        "/* Written by tools/build_native.py. */",
        "#include <stddef.h>",
        '#include "tenant.h"',
    ]
    exports = [hook for hook in table.hooks if hook.library == "cuda"]
    if is_linked:
        lines += [f"extern char {hook.export}[];" for hook in exports]
    lines.append("const struct linked linked[] = {")
    for hook in exports:
        row = f'"{hook.export}", "{hook.symbol}", {hook.since}, {int(hook.is_per_thread)}'
        address = f"(void *){hook.export}" if is_linked else "NULL"
        lines.append(f"    {{{row}, {address}}},")
    lines += ["    {NULL, NULL, 0, 0, NULL},", "};", ""]
    return "\n".join(lines)
