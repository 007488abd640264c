"""The variables a chat template reads besides the messages: thinking on or off, effort, and so on.

Found in the template's syntax tree, so that the window and `--template-var` can offer them without
knowing the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jinja2 import TemplateSyntaxError, meta, nodes

from slipstream.engine.template_sandbox import TemplateEnvironment
from slipstream.errors import UsageError


class VariableKind(StrEnum):
    """What a variable takes."""

    SWITCH = "switch"  # true or false
    CHOICE = "choice"  # one of `choices`, for which the template has words
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """A variable the template reads. `label` is empty for those nobody has described.

    `default` is what the template takes without a value, None where it does not say.
    """

    name: str
    kind: VariableKind
    label: str = ""
    choices: tuple[str, ...] = ()
    default: bool | int | float | str | None = None

    def parse(self, text: str) -> object:
        """The value in `text` as `--template-var` gives it. Raises `UsageError`."""
        word = text.strip().casefold()
        if self.kind is VariableKind.SWITCH:
            if word in _TRUE or word in _FALSE:
                return word in _TRUE
            raise UsageError(
                f"The template variable {self.name} is a switch.",
                f"“{text}” is neither on nor off.",
                "Use true or false.",
            )
        if self.kind is VariableKind.NUMBER:
            try:
                return int(word)
            except ValueError:
                raise UsageError(
                    f"The template variable {self.name} takes a whole number.",
                    f"“{text}” is none.",
                ) from None
        return text


_TRUE = frozenset({"true", "on", "yes", "1"})
_FALSE = frozenset({"false", "off", "no", "0"})

# What the renderer itself gives or withholds, and what only tools, documents and images need.
RESERVED_NAMES = frozenset(
    {"messages", "add_generation_prompt", "bos_token", "eos_token", "raise_exception"}
    | {"strftime_now", "tools", "documents", "continue_final_message"}
)
_OUT_OF_SCOPE = RESERVED_NAMES | frozenset(
    {"available_tools", "builtin_tools", "controls", "custom_tools", "functions", "image_prompts"}
    | {"json_schema", "response_format", "response_schema", "tool_choice", "xml_tools"}
    | {"python_tools", "tools_in_user_message", "tool_namespace_descriptions", "pad_token"}
    | {"unk_token", "image_token", "video_token", "is_training", "training_prompt", "loop"}
)

_EFFORT = ("low", "medium", "high")
_LABELS: Mapping[str, str] = {
    "enable_thinking": "Thinking",
    "thinking": "Thinking",
    "reasoning": "Thinking",
    "thinking_mode": "Thinking",
    "reasoning_effort": "Reasoning effort",
    "reasoning_strength": "Reasoning effort",
    "thinking_effort": "Reasoning effort",
    "thinking_budget": "Thinking budget (tokens)",
    "preserve_thinking": "Keep earlier thinking",
    "preserved_thinking": "Keep earlier thinking",
    "keep_past_thinking": "Keep earlier thinking",
    "skip_thinking": "Leave out earlier thinking",
    "clear_thinking": "Leave out earlier thinking",
    "model_identity": "Who the model is",
    "current_date": "Date told to the model",
    "date_string": "Date told to the model",
    "default_system_prompt": "The template's own system prompt",
}
_KINDS: Mapping[str, VariableKind] = {
    "enable_thinking": VariableKind.SWITCH,
    "reasoning_effort": VariableKind.CHOICE,
    "reasoning_strength": VariableKind.CHOICE,
    "thinking_budget": VariableKind.NUMBER,
}


@dataclass(slots=True)
class _Evidence:
    """What a template does with one variable."""

    as_switch: bool = False
    as_number: bool = False
    as_text: bool = False
    words: list[str] | None = None
    default: Any = None

    @property
    def only_asked(self) -> bool:
        """Whether the template asks for its truth and does nothing else with it."""
        return self.as_switch and not self.as_text and self.default is None

    def compared(self, value: object) -> None:
        if isinstance(value, bool):
            self.as_switch = True
        elif isinstance(value, int):
            self.as_number = True
        elif isinstance(value, str) and value:
            self.words = self.words or []
            if value not in self.words:
                self.words.append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.compared(item)

    def defaulted(self, value: object) -> None:
        if self.default is None and isinstance(value, (bool, int, float, str)):
            self.default = value


def template_variables(source: str) -> tuple[TemplateVariable, ...]:
    """The variables in order of their first use; empty for a template that cannot be read."""
    try:
        tree = TemplateEnvironment().parse(source)
    except TemplateSyntaxError:
        return ()
    undeclared = meta.find_undeclared_variables(tree)
    reads = _Reads()
    reads.walk(tree, frozenset(), None)
    ordered = [name for name in reads.outside() if name in undeclared - _OUT_OF_SCOPE]
    evidence = {name: _Evidence() for name in ordered}
    _gather(tree, evidence)
    return tuple(_variable(name, evidence[name]) for name in ordered)


def _variable(name: str, found: _Evidence) -> TemplateVariable:
    words = tuple(found.words or ())
    if isinstance(found.default, str) and found.default and words and found.default not in words:
        words = (*words, found.default)
    kind = _KINDS.get(name)
    if kind is None:
        if words:
            kind = VariableKind.CHOICE
        elif found.as_number or type(found.default) in (int, float):
            kind = VariableKind.NUMBER
        elif isinstance(found.default, bool) or found.only_asked:
            kind = VariableKind.SWITCH
        else:
            kind = VariableKind.TEXT
    if kind is not VariableKind.CHOICE:
        words = ()
    elif name in ("reasoning_effort", "reasoning_strength") and set(words) <= set(_EFFORT):
        words = _EFFORT
    return TemplateVariable(name, kind, _LABELS.get(name, ""), words, found.default)


def _constant(node: nodes.Node | None) -> object:
    if not isinstance(node, nodes.Expr):
        return None
    try:
        return node.as_const()
    except nodes.Impossible:
        return None


def _name(node: object, evidence: Mapping[str, _Evidence]) -> _Evidence | None:
    return evidence.get(node.name) if isinstance(node, nodes.Name) else None


def _conditions(node: nodes.Node) -> Iterable[nodes.Node]:
    """The expressions whose truth is asked in a condition."""
    if isinstance(node, (nodes.And, nodes.Or)):
        yield from _conditions(node.left)
        yield from _conditions(node.right)
    elif isinstance(node, nodes.Not):
        yield from _conditions(node.node)
    else:
        yield node


def _defined(test: nodes.Node, evidence: Mapping[str, _Evidence]) -> _Evidence | None:
    """The variable that `test` asks to be missing or there: `x is defined`, `not x is defined`."""
    for node in _conditions(test):
        if isinstance(node, nodes.Test) and node.name in ("defined", "undefined"):
            return _name(node.node, evidence)
    return None


class _Reads:
    """Which names a template reads before it sets them itself.

    Jinja's own search for undeclared variables also finds every name that is set in one branch
    and read after it; the order in the source tells them apart.
    """

    def __init__(self) -> None:
        self._assigned: dict[str, nodes.Macro | None] = {}
        self._read: dict[str, nodes.Macro | None] = {}

    def outside(self) -> list[str]:
        """The names in order; a macro may read what the template sets only further down."""
        return [
            name
            for name, macro in self._read.items()
            if macro is None or self._assigned.get(name, macro) is macro
        ]

    def walk(self, node: nodes.Node, bound: frozenset[str], macro: nodes.Macro | None) -> None:
        """Visit `node` in the order of execution, inside `macro`, with parameters `bound`."""
        if isinstance(node, nodes.Name):
            if node.ctx == "load":
                known = node.name in bound or node.name in self._assigned
                if not known and (macro is None or node.name not in self._read):
                    self._read[node.name] = macro
            elif node.name not in bound:
                self._assigned.setdefault(node.name, macro)
            return
        children = list(node.iter_child_nodes())
        if isinstance(node, nodes.Assign):
            children.reverse()  # `set x = x | default(…)` reads first
        elif isinstance(node, nodes.For):
            self.walk(node.iter, bound, macro)
            bound |= {"loop", *(name.name for name in _names(node.target))}
            children = [child for child in children if child is not node.iter]
        elif isinstance(node, nodes.Macro):
            self._assigned.setdefault(node.name, macro)
            bound |= {"caller", "varargs", "kwargs", *(name.name for name in node.args)}
            macro = node
        elif isinstance(node, nodes.CallBlock):
            bound |= {name.name for name in node.args}
        for child in children:
            self.walk(child, bound, macro)


def _names(node: nodes.Node) -> Iterable[nodes.Name]:
    if isinstance(node, nodes.Name):
        return (node,)
    return node.find_all(nodes.Name)


def _gather(tree: nodes.Template, evidence: Mapping[str, _Evidence]) -> None:
    tests: list[nodes.Node] = []
    for choice in tree.find_all(nodes.CondExpr):
        tests.append(choice.test)
        if (found := _defined(choice.test, evidence)) and _name(choice.expr1, evidence) is found:
            found.defaulted(_constant(choice.expr2))
    for branch in tree.find_all(nodes.If):
        tests.append(branch.test)
        found = _defined(branch.test, evidence)
        if found is not None:
            for body in branch.body:
                if isinstance(body, nodes.Assign) and _name(body.target, evidence) is found:
                    found.defaulted(_constant(body.node))
    for node in (part for test in tests for part in _conditions(test)):
        if found := _name(node.node if isinstance(node, nodes.Filter) else node, evidence):
            found.as_switch = True
    for text in tree.find_all((nodes.Add, nodes.Concat)):
        for part in text.iter_child_nodes():
            if found := _name(part, evidence):
                found.as_text = True
    for comparison in tree.find_all(nodes.Compare):
        for operand in comparison.ops:
            if found := _name(comparison.expr, evidence):
                found.compared(_constant(operand.expr))
            elif found := _name(operand.expr, evidence):
                found.compared(_constant(comparison.expr))
    for test in tree.find_all(nodes.Test):
        if (found := _name(test.node, evidence)) and test.name in ("true", "false", "boolean"):
            found.as_switch = True
    for applied in tree.find_all(nodes.Filter):
        if (found := _name(applied.node, evidence)) and applied.name in ("default", "d"):
            default = _constant(applied.args[0]) if applied.args else None
            found.defaulted(default)
            found.as_switch = found.as_switch or isinstance(default, bool)


def parse_variables(
    assignments: Iterable[str], variables: Iterable[TemplateVariable]
) -> dict[str, object]:
    """`NAME=VALUE` as the command line takes them, each value read as its variable's kind.

    A name the template does not read is passed on: words true and false as booleans, whole
    numbers as numbers. Raises `UsageError` for a reserved name or a missing `=`.
    """
    known = {variable.name: variable for variable in variables}
    values: dict[str, object] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise UsageError(
                "A template variable is given as NAME=VALUE.",
                f"“{assignment}” is not of that form.",
            )
        check_names((name,))
        if name in known:
            values[name] = known[name].parse(text)
        elif text.casefold() in ("true", "false"):
            values[name] = text.casefold() == "true"
        else:
            try:
                values[name] = int(text)
            except ValueError:
                values[name] = text
    return values


def check_names(names: Iterable[str]) -> None:
    """Raise `UsageError` for a name that the renderer itself sets."""
    for name in names:
        if name in RESERVED_NAMES:
            raise UsageError(
                f"The template variable {name} cannot be set.",
                "Slipstream itself gives it to the template.",
            )
