"""Chat templates: rules with their notes, errors with their place, and a sandbox with an end."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from slipstream.chat.records import Role
from slipstream.engine.builtin_templates import BUILTIN_TEMPLATES, guess_builtin
from slipstream.engine.chat_template import ChatTemplate, RenderedPrompt, Turn, choose_template
from slipstream.engine.template_error import TemplateError
from slipstream.engine.template_sandbox import RenderLimits
from slipstream.engine.template_variables import VariableKind, parse_variables, template_variables
from slipstream.errors import ContextSizeError, ExitCode, UsageError

PLAIN = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[go]{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}"
)
SILENT_SYSTEM = (
    "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)
ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}"
)


def user(text: str) -> Turn:
    return Turn(Role.USER, text)


def assistant(text: str, reasoning: str = "") -> Turn:
    return Turn(Role.ASSISTANT, text, reasoning)


def system(text: str) -> Turn:
    return Turn(Role.SYSTEM, text)


def template(source: str, **options: object) -> ChatTemplate:
    return ChatTemplate(source, name="test.jinja", **options)  # type: ignore[arg-type]


def render(source: str, *turns: Turn, **variables: object) -> RenderedPrompt:
    return template(source).render(turns, variables=variables)


def test_a_conversation_is_rendered_without_notes() -> None:
    prompt = render(PLAIN, system("s"), user("a"), assistant("b"), user("c"))
    assert prompt.text == "[system]s[user]a[assistant]b[user]c[go]"
    assert prompt.notes == ()
    assert template(PLAIN).render([user("a")], add_generation_prompt=False).text == "[user]a"


@pytest.mark.parametrize("source", [NO_SYSTEM, SILENT_SYSTEM])
def test_a_system_prompt_without_a_role_is_folded_into_the_first_user_turn(source: str) -> None:
    prompt = render(source, system("be brief"), user("hi"), assistant("yo"), user("x"))
    assert prompt.text == "[user]be brief\n\nhi[assistant]yo[user]x"
    assert len(prompt.notes) == 1
    assert "no system role" in prompt.notes[0]


def test_a_system_text_the_template_rewrites_is_not_folded() -> None:
    source = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content | replace('/think', '') }}{% endfor %}"
    )
    assert render(source, system("x /think"), user("hi")).text == "[system]x [user]hi"


def test_a_stopped_empty_answer_is_dropped_and_the_questions_are_joined() -> None:
    prompt = render(ALTERNATING, user("a"), assistant("  ", "thought"), user("b"))
    assert prompt.text == "[user]a\n\nb"
    assert len(prompt.notes) == 2
    assert "empty answer" in prompt.notes[0]
    assert "joined" in prompt.notes[1]


def test_a_leading_answer_gets_a_user_turn_before_it_only_where_needed() -> None:
    assert render(PLAIN, assistant("hello"), user("hi")).notes == ()
    prompt = render(ALTERNATING, assistant("hello"), user("hi"))
    assert prompt.text == "[user][assistant]hello[user]hi"
    assert "user to speak first" in prompt.notes[0]


def test_a_leading_answer_is_left_out_where_the_template_takes_no_empty_turn() -> None:
    source = ALTERNATING.replace(
        "{% for m in messages %}",
        "{% for m in messages %}{% if not m.content %}{{ raise_exception('empty') }}{% endif %}",
    )
    prompt = render(source, assistant("hello"), user("hi"))
    assert prompt.text == "[user]hi"
    assert "left out" in prompt.notes[0]


def test_a_later_system_turn_that_is_refused_moves_into_the_next_user_turn() -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('only first') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    )
    prompt = render(source, system("s"), user("a"), assistant("b"), system("new"), user("c"))
    assert prompt.text == "[system]s[user]a[assistant]b[user]new\n\nc"
    assert len(prompt.notes) == 1


def test_what_no_variant_satisfies_is_an_error_in_the_templates_own_words() -> None:
    with pytest.raises(TemplateError, match="nobody may speak") as raised:
        render("x\n  {{ raise_exception('nobody may speak') }}", user("hi"))
    assert (raised.value.line, raised.value.column) == (2, 3)
    assert raised.value.exit_code is ExitCode.USAGE


def test_no_message_is_an_error() -> None:
    with pytest.raises(TemplateError):
        render(PLAIN)


def test_a_system_prompt_alone_is_enough_to_be_rendered() -> None:
    assert render(NO_SYSTEM, system("s")).text == "[user]s"


def test_earlier_reasoning_goes_only_to_templates_that_read_it() -> None:
    turns = (user("a"), assistant("b", "because"), user("c"))
    assert "because" not in render(PLAIN, *turns).text
    for key in ("m.reasoning_content", "m['thinking']", "m.get('reasoning')"):
        source = (
            "{% for m in messages %}" + f"{{{{ {key} or '' }}}}" + "{{ m.content }}{% endfor %}"
        )
        assert "because" in render(source, *turns).text
    variable = PLAIN + "{% if thinking %}on{% endif %}"  # a variable of that name, not a key
    assert "because" not in render(variable, *turns).text


def test_the_conventions_templates_rely_on() -> None:
    clock = lambda: datetime(2031, 2, 3)  # noqa: E731
    source = (
        "{{ bos_token }}{{ strftime_now('%Y-%m-%d') }}"
        "{{ {'ä': '<b>'} | tojson }}{{ [1] | tojson(indent=2) }}"
        "{% generation %}{{ messages[0].content }}{% endgeneration %}"
        "{% for x in range(9) %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}"
        "{% do messages[0].get('x') %}{{ eos_token }}{% if tools %}tools{% endif %}"
    )
    made = template(source, clock=clock, bos_token="<s>", eos_token="</s>")
    assert made.render([user("hi")]).text == '<s>2031-02-03{"ä": "<b>"}[\n  1\n]hi01</s>'


def test_loop_variables_survive_the_metering() -> None:
    source = (
        "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}"
        "{% else %}none{% endfor %}{{ messages[0].content }}"
    )
    assert render(source, user("x")).text == "1/1Truex"


# Errors with their place


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("a\nb {% foo %}", 2, 6),  # the unknown word
        ("a\n  {{ x | }}", 2, 10),
        ("a\n\n   {{ x ? }}", 3, 9),  # a character the lexer does not know
        ("{% if x %}\n abc", 2, 2),
        ("{{ x | nofilter }}", 1, 8),
        ("a\r\n  {{ ! }}", 2, 6),
    ],
)
def test_a_mistake_is_told_with_line_and_column(source: str, line: int, column: int) -> None:
    with pytest.raises(TemplateError) as raised:
        template(source)
    error = raised.value
    assert error.line == line
    assert error.column == column
    assert f"test.jinja, line {line}, column {column}" in error.detail
    assert error.hint


def test_a_failure_while_rendering_is_told_with_its_line() -> None:
    with pytest.raises(TemplateError) as raised:
        render("a\nb\n  {{ nothing.at_all.here }}", user("x"))
    assert (raised.value.line, raised.value.column) == (3, 6)


# The sandbox


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ self.__init__.__globals__.os.system('true') }}",
        "{{ '{0.__class__}'.format(messages) }}",
    ],
)
def test_the_way_to_python_is_closed(source: str) -> None:
    try:
        text = render(source + "{{ messages[0].content }}", user("x")).text
    except TemplateError:
        return
    assert text == "x"  # what is not an error is undefined, and undefined is written as nothing


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set r = range(9999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
        "{{ f(60) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(99999) %}" + "x" * 2000 + "{% endfor %}",
        "{{ 'x' * 1000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{{ 9 ** (9 ** 9) }}",
        "{{ 'x' | center(1000000000) }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ lipsum(n=100000) }}",
        "{% set n = namespace(s='xx') %}{% for i in range(60) %}"
        "{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% set n = namespace(s='xx') %}{% for i in range(60) %}"
        "{% set n.s = n.s + n.s %}{% endfor %}",
        "{% set n = namespace(s='xx') %}{% for i in range(60) %}"
        "{% set n.s = n.s.replace('x', 'xx') %}{% endfor %}",
        "{% set n = namespace(s='xx') %}{% for i in range(60) %}"
        "{% set n.s = n.s | replace('x', 'xx') %}{% endfor %}",
        "{% set n = namespace(s=9) %}{% for i in range(60) %}{% set n.s = n.s * n.s %}{% endfor %}",
        "{% set n = namespace(s='xx') %}{% for i in range(60) %}"
        "{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}{% endfor %}",
        "{{ ('x' * 4000000).join(['y'] * 4000000) }}",
        "{{ ('x' * 4000000).replace('x', 'x' * 4000000) }}",
    ],
)
def test_a_template_without_end_is_stopped(source: str) -> None:
    limits = RenderLimits(steps=100_000, characters=8_000_000, seconds=5)
    started = time.monotonic()
    with pytest.raises(TemplateError):
        template(source + "{{ messages[0].content }}", limits=limits).render([user("x")])
    assert time.monotonic() - started < 4


def test_the_clock_ends_a_render_too() -> None:
    source = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(TemplateError, match="not finished after"):
        template(source, limits=RenderLimits(seconds=0.05)).render([user("x")])


@pytest.mark.parametrize("source", ["{{ " + "(" * 5000 + ")" * 5000 + " }}", "x" * 1_000_001])
def test_a_monstrous_source_is_refused(source: str) -> None:
    with pytest.raises(TemplateError):
        template(source)


# The choice


def test_the_models_own_template_comes_first_after_the_users() -> None:
    assert choose_template(PLAIN).name == "the model file's own template"
    chosen = choose_template(PLAIN, NO_SYSTEM, override_name="mine.jinja")
    assert (chosen.name, chosen.source, chosen.notes) == ("mine.jinja", NO_SYSTEM, ())


@pytest.mark.parametrize("name", ["Llama 3", "llama3", "LLAMA-3"])
def test_a_built_in_template_can_be_named(name: str) -> None:
    assert choose_template(PLAIN, name).name == "Llama 3 (built in)"


def test_a_broken_choice_of_the_user_is_an_error() -> None:
    with pytest.raises(TemplateError, match=r"mine\.jinja, line 1"):
        choose_template(PLAIN, "{% for %}", override_name="mine.jinja")


def test_a_missing_template_is_replaced_by_the_vocabularys_and_said() -> None:
    chosen = choose_template(None, has_token={"<|im_start|>", "<|im_end|>"}.__contains__)
    assert chosen.name == "ChatML (built in)"
    assert "no chat template" in chosen.notes[0]
    assert "ChatML" in chosen.notes[0]


@pytest.mark.parametrize(
    ("embedded", "words"),
    [
        ("a\n{% foo %}", "line 2, column 4"),
        ("a\n{{ nothing.at.all }}", "line 2, column 4"),
        ("hello", "no message text"),
    ],
)
def test_a_broken_template_of_the_model_is_replaced_and_said(embedded: str, words: str) -> None:
    chosen = choose_template(embedded, architecture="gemma2")
    assert chosen.name == "Gemma (built in)"
    assert words in chosen.notes[0]
    assert "Gemma is used instead" in chosen.notes[0]


@pytest.mark.parametrize(
    ("tokens", "architecture", "name"),
    [
        (("<|im_start|>", "<|im_end|>"), "qwen2", "ChatML"),
        (("<|start_header_id|>", "<|eot_id|>"), "llama", "Llama 3"),
        (("<start_of_turn>", "<end_of_turn>"), "gemma", "Gemma"),
        (("<|user|>", "<|assistant|>", "<|end|>"), "phi3", "Phi-3"),
        (("<|user|>", "<|assistant|>"), "llama", "Zephyr"),
        (("[INST]", "[/INST]"), "llama", "Mistral"),
        ((), "gemma3", "Gemma"),
        ((), "llama", "Alpaca"),
    ],
)
def test_the_guess_follows_the_vocabulary(
    tokens: tuple[str, ...], architecture: str, name: str
) -> None:
    assert guess_builtin(tokens.__contains__, architecture).name == name


@pytest.mark.parametrize("made", BUILTIN_TEMPLATES, ids=lambda made: made.name)
def test_every_built_in_template_renders_every_conversation(made: object) -> None:
    chosen = choose_template(None, made.name, bos_token="<s>", eos_token="</s>")  # type: ignore[attr-defined]
    turns = (system("SYSTEM"), user("ONE"), assistant("TWO"), user("THREE"))
    text = chosen.render(turns).text
    places = [text.index(word) for word in ("SYSTEM", "ONE", "TWO", "THREE")]
    assert places == sorted(places)


# Variables


def test_variables_are_found_with_kind_choices_and_default() -> None:
    source = (
        "{% if not mode is defined %}{% set mode = 'fast' %}{% endif %}"
        "{% if mode == 'slow' %}x{% endif %}{% if budget == 0 %}y{% endif %}"
        "{% if enable_thinking is false %}z{% endif %}{{ 'a' + who }}{% set own = 1 %}{{ own }}"
        "{% for m in messages %}{{ m.content }}{{ loop.index }}{% endfor %}"
        "{% macro f(inner) %}{{ inner }}{{ later }}{% endmacro %}{% set later = 2 %}"
        "{{ keep | default(true) }}"
    )
    found = {made.name: made for made in template_variables(source)}
    assert list(found) == ["mode", "budget", "enable_thinking", "who", "keep"]
    assert found["mode"].kind is VariableKind.CHOICE
    assert (found["mode"].choices, found["mode"].default) == (("slow", "fast"), "fast")
    assert found["budget"].kind is VariableKind.NUMBER
    assert found["enable_thinking"].kind is VariableKind.SWITCH
    assert found["enable_thinking"].label == "Thinking"
    assert found["who"].kind is VariableKind.TEXT
    assert (found["keep"].kind, found["keep"].default) == (VariableKind.SWITCH, True)


def test_a_template_that_cannot_be_read_has_no_variables() -> None:
    assert template_variables("{% foo %}") == ()


def test_variables_are_parsed_by_their_kind() -> None:
    known = template_variables("{% if enable_thinking is true %}{% endif %}{{ 'a' + who }}")
    assert parse_variables(["enable_thinking=off", "who=5", "n=5", "b=True", "t=a=b"], known) == {
        "enable_thinking": False,
        "who": "5",
        "n": 5,
        "b": True,
        "t": "a=b",
    }


@pytest.mark.parametrize("wrong", ["x", "=1", "messages=1", "enable_thinking=maybe", "a b=1"])
def test_a_variable_that_cannot_be_set_is_an_error(wrong: str) -> None:
    with pytest.raises(UsageError):
        parse_variables([wrong], template_variables("{% if enable_thinking %}{% endif %}"))


def test_reserved_names_cannot_be_smuggled_in() -> None:
    with pytest.raises(UsageError):
        render(PLAIN, user("x"), messages=[])


def test_tags_a_person_typed_do_not_open_the_reasoning() -> None:
    source = "{{ '</think>' if x }}{% for m in messages %}{{ m.content }}{% endfor %}"
    assert not render(source, user("what is <think>")).reasoning.starts_open


def test_millions_of_characters_are_not_the_templates_fault() -> None:
    source = "{% for m in messages %}{{ m.role + m.content }}{% endfor %}"
    with pytest.raises(ContextSizeError, match="longer than any context window"):
        render(source, user("word " * 1_000_000))
    assert len(render(source, user("x" * 3_400_000)).text) > 3_400_000
