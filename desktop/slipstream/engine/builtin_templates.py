"""Chat templates for models that bring none: named, few, and chosen by what the vocabulary holds.

Each accepts a system turn only where its models were trained with one; the rules of
`chat_template.py` fold it into the first user turn elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltinTemplate:
    """A named Jinja source.

    `tokens` must all be in a vocabulary for the template to be its guess; `architectures` are
    GGUF architecture names it is the guess for when no template's tokens are there.
    """

    name: str
    source: str
    tokens: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()


_CHATML = """\
{%- for message in messages -%}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""

_LLAMA_3 = """\
{{- bos_token -}}
{%- for message in messages -%}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' -}}
    {{- message.content | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
{%- endif -%}
"""

_LLAMA_2 = """\
{%- set system = namespace(text='') -%}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {%- set system.text = '<<SYS>>\\n' + message.content + '\\n<</SYS>>\\n\\n' -%}
    {%- elif message.role == 'user' -%}
        {{- bos_token + '[INST] ' + system.text + message.content + ' [/INST]' -}}
        {%- set system.text = '' -%}
    {%- else -%}
        {{- ' ' + message.content + ' ' + eos_token -}}
    {%- endif -%}
{%- endfor -%}
"""

_MISTRAL = """\
{{- bos_token -}}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {{- raise_exception('System role not supported') -}}
    {%- elif message.role == 'user' -%}
        {{- '[INST] ' + message.content + ' [/INST]' -}}
    {%- else -%}
        {{- ' ' + message.content + eos_token -}}
    {%- endif -%}
{%- endfor -%}
"""

_GEMMA = """\
{{- bos_token -}}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {{- raise_exception('System role not supported') -}}
    {%- endif -%}
    {%- set role = 'model' if message.role == 'assistant' else message.role -%}
    {{- '<start_of_turn>' + role + '\\n' + message.content | trim + '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<start_of_turn>model\\n' -}}
{%- endif -%}
"""

_PHI_3 = """\
{%- for message in messages -%}
    {{- '<|' + message.role + '|>\\n' + message.content + '<|end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|assistant|>\\n' -}}
{%- endif -%}
"""

_ZEPHYR = """\
{%- for message in messages -%}
    {{- '<|' + message.role + '|>\\n' + message.content + eos_token + '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|assistant|>\\n' -}}
{%- endif -%}
"""

_ALPACA = """\
{{- bos_token -}}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {{- message.content + '\\n\\n' -}}
    {%- elif message.role == 'user' -%}
        {{- '### Instruction:\\n' + message.content + '\\n\\n' -}}
    {%- else -%}
        {{- '### Response:\\n' + message.content + eos_token + '\\n\\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '### Response:\\n' -}}
{%- endif -%}
"""

# In the order of guessing: templates with telling tokens first.
BUILTIN_TEMPLATES: tuple[BuiltinTemplate, ...] = (
    BuiltinTemplate("ChatML", _CHATML, ("<|im_start|>", "<|im_end|>")),
    BuiltinTemplate("Llama 3", _LLAMA_3, ("<|start_header_id|>", "<|eot_id|>")),
    BuiltinTemplate(
        "Gemma", _GEMMA, ("<start_of_turn>", "<end_of_turn>"), ("gemma", "gemma2", "gemma3")
    ),
    BuiltinTemplate("Phi-3", _PHI_3, ("<|user|>", "<|assistant|>", "<|end|>"), ("phi3",)),
    BuiltinTemplate("Zephyr", _ZEPHYR, ("<|user|>", "<|assistant|>")),
    BuiltinTemplate("Mistral", _MISTRAL, ("[INST]", "[/INST]"), ("mistral",)),
    BuiltinTemplate("Llama 2", _LLAMA_2),  # shares its architecture name with bases: never guessed
    BuiltinTemplate("Alpaca", _ALPACA),
)


def builtin_template(name: str) -> BuiltinTemplate | None:
    """The built-in template of that name, upper and lower case, spaces and hyphens alike."""

    def plain(text: str) -> str:
        return "".join(letter for letter in text.casefold() if letter.isalnum())

    wanted = plain(name)
    return next((made for made in BUILTIN_TEMPLATES if plain(made.name) == wanted), None)


def guess_builtin(has_token: Callable[[str], bool], architecture: str = "") -> BuiltinTemplate:
    """The template whose control tokens the vocabulary holds, else the architecture's, else Alpaca.

    Alpaca is the last resort because it needs no control token: any vocabulary can spell it.
    """
    for made in BUILTIN_TEMPLATES:
        if made.tokens and all(has_token(token) for token in made.tokens):
            return made
    for made in BUILTIN_TEMPLATES:
        if architecture in made.architectures:
            return made
    return BUILTIN_TEMPLATES[-1]
