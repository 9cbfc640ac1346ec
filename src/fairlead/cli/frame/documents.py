"""The formats `-o json` and `-o yaml`, and how a document and its numbers are written."""

from __future__ import annotations

from fairlead.errors import UserError


def check_output(output: str, *more: str) -> None:
    if output not in ("", "wide", "json", "yaml", *more):
        raise UserError(
            "unknown output format,only support:[wide|json|yaml]", "without `-o` it is a table"
        )


def render_document(output: str, document: object) -> str:
    """`output` is json or yaml."""
    return (render_json if output == "json" else render_yaml)(document)


def printed_document(output: str, document: object) -> str:
    """The same with a newline at the end, for the terminal."""
    text = render_document(output, document)
    return text if text.endswith("\n") else f"{text}\n"


def render_json(document: object) -> str:
    """Indent 4, no newline at the end."""
    import json

    return json.dumps(document, indent=4, ensure_ascii=False)


def render_yaml(document: object) -> str:
    """Indent 2, dashes not indented, ends with a newline."""
    import msgspec
    import yaml

    plain = msgspec.to_builtins(document)
    return yaml.dump(
        plain,
        Dumper=yaml.CSafeDumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=10_000,
    )


def number(value: float) -> float:
    """An int when whole, else rounded to what matters,
    so that no `14.666666666666666` reaches a reader.
    """
    return int(value) if value == int(value) else round(value, 2)
