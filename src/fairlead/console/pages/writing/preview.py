"""What every write of the console answers: a preview, and faults of a body by field."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.console.pages.envelope import FieldFault, Json
from fairlead.errors import UserError

UNREADABLE = "type"
UNKNOWN = "unknown-field"
MISSING = "required"


class Effect(Json, frozen=True):
    """A change of one object of the cluster. `verb`: create, update or delete. `namespace`: "" =
    of the whole cluster.
    """

    verb: str
    kind: str
    namespace: str
    name: str


class Preview(Json, frozen=True):
    """The answer to `dryRun=true`: nothing was changed. `fields`: why the write would be refused;
    `effects`: what would change in the cluster, the object itself first.
    """

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]


class Deleted(Json, frozen=True):
    """The answer to a deletion. `is_ending`: the object stays until what belongs to it is gone."""

    deleted: str
    is_ending: bool = False


class NoBody(Json, frozen=True):
    """The body of a write that needs none."""


def decoded(body: bytes, form: Any) -> Any | list[FieldFault]:
    """The body of a write as `form`, a Struct, or every field of it that is malformed.

    Raises UserError for what is no JSON object, and for a field that the form does not have.
    """
    if form is NoBody and not body.strip():
        return NoBody()
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"this body is malformed: {error}", "send a JSON object") from error
    if not isinstance(found, dict):
        raise UserError("this body is no JSON object", "send a JSON object")
    fields = {each.encode_name: each for each in msgspec.structs.fields(form)}
    unknown = sorted(set(found) - set(fields))
    if unknown:
        raise UserError(
            f"this body has the unknown field `{unknown[0][:100]}`",
            f"its fields: {', '.join(fields)}",
        )
    faults = list[FieldFault]()
    for name, field in fields.items():
        if name not in found:
            if field.required:
                faults.append(FieldFault(name, MISSING, f"`{name}` is missing"))
            continue
        try:
            msgspec.convert(found[name], field.type)
        except msgspec.ValidationError as error:
            faults.append(_fault(name, str(error)))
    return faults or msgspec.convert(found, form)


def _fault(name: str, text: str) -> FieldFault:
    """msgspec writes where the value is as `$.a[0]`, relative to the field."""
    why, _, where = text.partition(" - at `$")
    if "unknown field" in why:
        raise UserError(f"in `{name}`: {why}", "leave it out")
    return FieldFault(name + where.removesuffix("`"), UNREADABLE, why)
