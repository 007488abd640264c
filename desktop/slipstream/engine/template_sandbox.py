"""The Jinja environment chat templates run in: a sandbox whose every render has an end.

A template comes out of a downloaded file, so it is a program of a stranger. Jinja's immutable
sandbox keeps it from Python's internals; this module adds what the sandbox lacks, a budget of
steps, characters and seconds. It knows nothing of messages and roles.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

_LARGEST_VALUE = 4_000_000  # characters of a string, items of a list: beyond any context window
_LARGEST_INTEGER_BITS = 4096
_WIDE_FIELD = re.compile(r"\d{7}")  # a format string that asks for a million columns or more
_WIDTH_METHODS = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "format"})


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """What one render may cost: loop rounds and macro calls, characters written, seconds.

    The steps leave room for templates that look back over all earlier messages at each message
    (Gemma 4) in chats of some thousand turns.
    """

    steps: int = 5_000_000
    characters: int = 32_000_000
    seconds: float = 5.0


class TemplateRejection(jinja2.TemplateError):
    """The template itself called `raise_exception`: it does not accept these messages."""


class BudgetExceeded(jinja2.TemplateError):
    """The render went over its `RenderLimits`."""


class RenderBudget:
    """Counts down the limits of the render that is running."""

    def __init__(self, limits: RenderLimits) -> None:
        self._limits = limits
        self.restart()

    def restart(self) -> None:
        """Grant the whole budget anew; called before each render."""
        self._steps = self._limits.steps
        self._characters = self._limits.characters
        self._deadline = time.monotonic() + self._limits.seconds

    def step(self, characters: int) -> None:
        """A loop round or macro call began; its body writes up to `characters` fixed ones."""
        self._steps -= 1
        self.write(characters)
        if self._steps < 0:
            raise BudgetExceeded(f"more than {self._limits.steps:,} steps")
        if time.monotonic() > self._deadline:
            raise BudgetExceeded(f"not finished after {self._limits.seconds:g} seconds")

    def write(self, characters: int) -> None:
        """`characters` were written, whether to the prompt or into a variable."""
        self._characters -= characters
        if self._characters < 0:
            raise BudgetExceeded(f"more than {self._limits.characters:,} characters")


def _check_size(value: object) -> None:
    if isinstance(value, (str, list, tuple, dict)) and len(value) > _LARGEST_VALUE:
        raise BudgetExceeded("a value grew beyond all measure")


def _check_arguments(values: tuple[object, ...]) -> None:
    for value in values:
        if isinstance(value, int) and abs(value) > _LARGEST_VALUE:
            raise BudgetExceeded(f"{value} is too large a number here")


def _check_replacement(text: str, old: object, new: object) -> None:
    grown = text.count(str(old)) * len(str(new))
    if grown > _LARGEST_VALUE:
        raise BudgetExceeded("a replacement grew beyond all measure")


def _bounded_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter with its numbers and its result held to a size; Jinja's marks on it are kept."""

    @functools.wraps(function)
    def bounded(*arguments: Any, **named: Any) -> Any:
        _check_arguments((*arguments[1:], *named.values()))
        if name == "format" and _WIDE_FIELD.search(str(arguments[0])):
            raise BudgetExceeded("a format asks for too many columns")
        if name == "replace":
            _check_replacement(str(arguments[1]), *map(str, arguments[2:4]))
        result = function(*arguments, **named)
        _check_size(result)
        return result

    return bounded


def to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`tojson` as chat templates mean it: plain JSON, not escaped for HTML as Jinja's own is.

    Source: transformers `utils/chat_template_utils.py`.
    """
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: object = "") -> None:
    raise TemplateRejection(str(message))


class GenerationBlock(Extension):
    """`{% generation %}…{% endgeneration %}`: marks an answer for training; here only its body."""

    tags = {"generation"}  # noqa: RUF012 (Jinja declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements between the two tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Meter(Extension):
    """Gives compiled templates a way to the budget that no template can rename or shadow."""

    budget: RenderBudget

    def step(self, characters: int) -> None:
        """Charge one loop round or macro call."""
        self.budget.step(characters)

    def concatenate(self, *parts: object) -> str:
        """The operator `~` with its result held to a size."""
        text = "".join(map(str, parts))
        _check_size(text)
        return text


class _Metering(NodeTransformer):
    """Puts a charge at the head of every loop and macro body, and bounds `~`."""

    def __init__(self, environment: jinja2.Environment) -> None:
        self._environment = environment

    def _call(self, name: str, arguments: list[nodes.Expr], lineno: int) -> nodes.Call:
        attribute = nodes.ExtensionAttribute(Meter.identifier, name)
        call = nodes.Call(attribute, arguments, [], None, None)
        call.set_lineno(lineno)
        call.set_environment(self._environment)
        return call

    def _charge(self, node: Any) -> Any:
        fixed = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        charge = nodes.ExprStmt(self._call("step", [nodes.Const(fixed)], node.lineno))
        charge.set_lineno(node.lineno)
        charge.set_environment(self._environment)
        node.body.insert(0, charge)
        return node

    visit_For = _charge  # noqa: N815 (Jinja finds visitors by these names)
    visit_Macro = _charge  # noqa: N815
    visit_CallBlock = _charge  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._call("concatenate", node.nodes, node.lineno)


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Jinja with the conventions of chat templates and a budget; one per chat template.

    Conventions as in transformers' `apply_chat_template`: `trim_blocks`, `lstrip_blocks`, loop
    controls, `raise_exception`, `strftime_now`, `tojson`; `do` besides.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(
        self,
        limits: RenderLimits | None = None,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.budget = RenderBudget(limits or RenderLimits())
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=self._count,
            extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", GenerationBlock, Meter],
        )
        meter = self.extensions[Meter.identifier]
        assert isinstance(meter, Meter)
        meter.budget = self.budget
        self.globals.pop("lipsum", None)
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = lambda form: clock().strftime(str(form))
        self.filters = {name: _bounded_filter(name, made) for name, made in self.filters.items()}
        self.filters["tojson"] = _bounded_filter("tojson", to_json)

    def compiled(self, source: str) -> jinja2.Template:
        """The template with its loops and macros metered. Raises `TemplateSyntaxError`."""
        tree = _Metering(self).visit(self.parse(source))
        return self.template_class.from_code(
            self, self.compile(tree, filename=FILE_NAME), self.make_globals(None)
        )

    def _count(self, value: Any) -> Any:
        if isinstance(value, str):
            self.budget.write(len(value))
        return value

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Jinja's hook for the operators named above: refuses those that would explode."""
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                    if len(many) * times > _LARGEST_VALUE:
                        raise BudgetExceeded("a repetition grew beyond all measure")
                    break
        if (
            operator == "**"
            and isinstance(left, int)
            and isinstance(right, int)
            and left.bit_length() * right > _LARGEST_INTEGER_BITS
        ):
            raise BudgetExceeded("a power grew beyond all measure")
        if operator == "%" and isinstance(left, str):
            _check_arguments(right if isinstance(right, tuple) else (right,))
            if _WIDE_FIELD.search(left):
                raise BudgetExceeded("a format asks for too many columns")
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, int) and result.bit_length() > _LARGEST_INTEGER_BITS:
            raise BudgetExceeded("a number grew beyond all measure")
        _check_size(result)
        return result

    def call(self, context: Context, obj: Any, /, *arguments: Any, **named: Any) -> Any:
        """Jinja's hook for every call: bounds what a method of a string can make of it."""
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        if isinstance(owner, str):
            method = getattr(obj, "__name__", "")
            if method in _WIDTH_METHODS:
                _check_arguments((*arguments, *named.values()))
                if method == "format" and _WIDE_FIELD.search(owner):
                    raise BudgetExceeded("a format asks for too many columns")
            elif method == "replace" and len(arguments) >= 2:
                _check_replacement(owner, arguments[0], arguments[1])
            elif method == "join" and arguments and isinstance(arguments[0], (list, tuple, str)):
                items = arguments[0]
                total = sum(len(item) for item in items if isinstance(item, str))
                if total + len(owner) * len(items) > _LARGEST_VALUE:
                    raise BudgetExceeded("a joined text grew beyond all measure")
        result = super().call(context, obj, *arguments, **named)
        _check_size(result)
        return result


FILE_NAME = "<chat template>"
