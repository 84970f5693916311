"""Commands made from the catalogue: parameters become arguments and options, the answer is shown by its type.

What is required is an argument, and so is a path; all else is an option. A command whose shape differs says only what
differs: parameters that it hides, other defaults, options of its own, or a function that calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec
from msgspec.inspect import BoolType, FloatType, IntType, LiteralType, Metadata, NoneType, UnionType, VarTupleType

from orchestrator.api.operation import AnyOperation
from orchestrator.api.parameters import Params
from orchestrator.clients.cli.context import Settings, global_options, text_of
from orchestrator.clients.render.commands import option

SHORT = {
    "recursive": "-r",
    "word": "-w",
    "context_lines": "-C",
    "files_only": "-l",
    "smart_case": "-S",
    "multiline": "-U",
}

NOT_TYPED = ("request_id", "approver", "supersedes")
"""Made by the client; asked of the person; for agents."""

Prepare = Callable[[Settings, dict[str, Any]], None]


class TextFile(click.ParamType[str]):
    """The text of a file, or of stdin for '-'. It is read when the command runs."""

    name = "FILE|-"


class OperationCommand(click.Command):
    """One operation on the command line.

    `prepare` may change what was typed, before the approver code is asked for. `run` gets the settings, the
    parameters, and what was typed besides; without `code_first` it asks for the code itself.
    `options` take the place of those made for the parameters of their names.
    """

    def __init__(  # noqa: PLR0913  # what the command line says of one command
        self,
        operation: AnyOperation,
        run: Callable[..., int] | None = None,
        *,
        words: str | None = None,
        about: str | None = None,
        hide: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        files: tuple[str, ...] = (),
        flags: tuple[str, ...] = (),
        options: tuple[click.Parameter, ...] = (),
        prepare: Prepare | None = None,
        code_first: bool = True,
    ) -> None:
        about = about or operation.summary
        brief = re.split(r"[.:;]", about, maxsplit=1)[0] + "."
        super().__init__(words or operation.words, help=about, short_help=brief)
        self.operation, self._run, self._prepare = operation, run, prepare
        self._code_first = code_first
        self._hide, self._defaults, self._options = hide, dict(defaults or {}), options
        self._files, self._flags = files, flags

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Made when they are first needed: reading the types of all commands would slow each of them."""
        if not self.params:
            hide = {*NOT_TYPED, *self._hide, *(str(option.name) for option in self._options)}
            made = parameters(
                self.operation.struct, hide=hide, defaults=self._defaults, files=self._files, flags=self._flags
            )
            shared = global_options(agent=not self.operation.takes("agent"))
            self.params = sorted([*made, *self._options, *shared], key=lambda each: isinstance(each, click.Option))
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> int:
        """Call the operation; the exit code."""
        settings = ctx.ensure_object(Settings)
        typed = dict(ctx.params)
        for parameter in self.params:
            if isinstance(parameter.type, TextFile) and typed[str(parameter.name)] is not None:
                typed[str(parameter.name)] = text_of(typed[str(parameter.name)])
        if self._prepare is not None:
            self._prepare(settings, typed)
        given = {name: value for name, value in typed.items() if self.operation.takes(name)}
        more = {name: value for name, value in typed.items() if name not in given}
        if given.get("path") is not None:
            given["path"] = settings.path(given["path"])
        if self.operation.takes("approver") and self._code_first and not given.get("dry_run"):
            given["approver"] = settings.approver()
        params = self.operation.params(**given)
        if self._run is not None:
            return self._run(settings, params, **more)
        return settings.run(self.operation, params)


def command(operation: AnyOperation, **shape: Any) -> Callable[[Callable[..., int]], OperationCommand]:
    """Make a function the `run` of a command, and its docstring the help; `shape` as in `OperationCommand`."""
    return lambda run: OperationCommand(operation, run, about=run.__doc__, **shape)


def parameters(
    struct: type[Params],
    *,
    hide: set[str],
    defaults: Mapping[str, Any],
    files: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> list[click.Parameter]:
    """An argument or an option for each parameter. `files`: those whose text is read from a file; `flags`: options."""
    described = msgspec.inspect.type_info(struct)
    assert isinstance(described, msgspec.inspect.StructType)
    made: list[click.Parameter] = []
    for field in described.fields:
        about, kinds = _parts(field.type)
        if field.name in hide or (isinstance(kinds[0], LiteralType) and len(kinds[0].values) == 1):
            continue
        required = field.required and field.name not in defaults
        default = None if required else defaults.get(field.name, field.default)
        shape: dict[str, Any] = {"type": TextFile() if field.name in files else _type(kinds)}
        if not required:
            shape["default"] = default
        if field.name in files:
            shape["metavar"] = TextFile.name
        elif len(kinds) == 2:  # a version is a text or a number
            shape["metavar"] = "@N|TIME" if "ISO 8601" in about else "@N"
        many = isinstance(kinds[0], VarTupleType)
        first = field.name == "path" and all(isinstance(each, click.Argument) for each in made)
        if field.name not in flags and (field.required or first):
            made.append(click.Argument([field.name], required=required, nargs=-1 if many else 1, **shape))
            continue
        flag = option(field.encode_name)
        if isinstance(kinds[0], BoolType):
            shape = {"default": default, "is_flag": True}
        elif default not in (None, "", ()):
            shape["show_default"] = True
        names = [flag, field.name, *([SHORT[field.name]] if field.name in SHORT else [])]
        made.append(click.Option(names, help=about, multiple=many, required=required, **shape))
    return made


def _parts(kind: msgspec.inspect.Type) -> tuple[str, list[msgspec.inspect.Type]]:
    """A type's description, and the types that it may be, without None."""
    if isinstance(kind, Metadata):
        about, kinds = _parts(kind.type)
        return (kind.extra_json_schema or {}).get("description", about), kinds
    if isinstance(kind, UnionType):
        return "", [part for each in kind.types for part in _parts(each)[1]]
    return "", [] if isinstance(kind, NoneType) else [kind]


def _type(kinds: list[msgspec.inspect.Type]) -> click.ParamType[Any] | type:
    match kinds:
        case [LiteralType(values=values)]:
            return click.Choice([str(value) for value in values])
        case [IntType()]:
            return int
        case [FloatType()]:
            return float
        case _:
            return str
