"""Command-line flags made from the settings they set, and a parser whose complaints are errors."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any, NoReturn

from slipstream.chat.preferences import MAX_THREADS
from slipstream.engine.cache_type import CacheType
from slipstream.engine.requests import DraftRequest, LoadRequest, Pace
from slipstream.engine.sampling import SETTINGS, SamplerSettings, SettingInfo
from slipstream.engine.speculation.drafter import LONGEST_PACED, DrafterKind, DraftSettings
from slipstream.engine.speculation.verify_rule import VerifyRule
from slipstream.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            "The command cannot be understood.", f"{self.prog}: {message}.", f"Try {self.prog} -h."
        )


def add_sampler_flags(parser: argparse.ArgumentParser) -> None:
    """One flag per field of `SamplerSettings`, underscores as hyphens."""
    group = parser.add_argument_group("sampling")
    for item in dataclasses.fields(SamplerSettings):
        flag = "--" + item.name.replace("_", "-")
        info = SETTINGS[item.name]
        if item.name == "logit_bias":
            group.add_argument(
                flag, action="append", type=_bias, metavar="ID=VALUE", help=_help(info, None)
            )
        elif isinstance(item.default, tuple):
            group.add_argument(flag, action="append", metavar="S", help=_help(info, None))
        else:
            kind = int if item.default is None else type(item.default)
            group.add_argument(
                flag, type=kind, metavar=_metavar(kind), help=_help(info, item.default)
            )


def sampler_settings(arguments: argparse.Namespace) -> SamplerSettings:
    """The settings these flags ask for. Raises `UsageError` naming what is out of range."""
    values: dict[str, Any] = {}
    for name in SETTINGS:
        value = getattr(arguments, name)
        if value is not None:
            values[name] = tuple(value) if isinstance(value, list) else value
    return SamplerSettings(**values)


def _help(info: SettingInfo, default: object) -> str:
    text = info.help if default in (None, "") else f"{info.help} Default: {default}."
    return text.replace("%", "%%")


def _metavar(kind: type) -> str:
    return {int: "N", float: "X"}.get(kind, "TEXT")


def _bias(text: str) -> tuple[int, float]:
    token, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form ID=VALUE")
    return int(token), float(value)


def add_template_flags(parser: argparse.ArgumentParser) -> None:
    """How the prompt is made from the messages."""
    parser.add_argument(
        "--chat-template",
        metavar="FILE",
        help="a Jinja chat template in place of the model file's own",
    )
    parser.add_argument(
        "--template-var",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable the template reads, such as enable_thinking=false; repeatable",
    )


_AUTO, _ON, _OFF = "auto", "on", "off"
_MAX_TOKENS = 2**31 - 1


def add_load_flags(parser: argparse.ArgumentParser) -> None:
    """How the target is loaded and computed."""
    parser.add_argument("--n-ctx", type=int, default=0, metavar="N", help="context in tokens")
    parser.add_argument(
        "--n-batch", type=int, default=0, metavar="N", help="prompt tokens per prefill chunk"
    )
    parser.add_argument(
        "--threads", type=int, default=0, metavar="N",
        help="threads to compute with. Default: as measured when the model was first loaded.",
    )  # fmt: skip
    parser.add_argument(
        "--threads-batch", type=int, default=0, metavar="N",
        help="threads for several tokens at once. Default: --threads, or as measured.",
    )  # fmt: skip
    parser.add_argument(
        "--flash-attention", choices=[_AUTO, _ON, _OFF], default=_AUTO,
        help="on takes less memory, and in the first 256 tokens drafted text rounds like plain "
        "text; auto: on unless it measured much slower on this processor. Default: auto.",
    )  # fmt: skip


def load_request(arguments: argparse.Namespace, path: Path) -> LoadRequest:
    """What these flags ask for. Raises `UsageError` for a number that is out of range: llama.cpp
    would cut it to 32 bits or abort the process."""
    limits = {
        "n_ctx": _MAX_TOKENS,
        "n_batch": _MAX_TOKENS,
        "threads": MAX_THREADS,
        "threads_batch": MAX_THREADS,
    }
    for name, limit in limits.items():
        _check_range("--" + name.replace("_", "-"), getattr(arguments, name), limit)
    return LoadRequest(
        path=path,
        n_ctx=arguments.n_ctx,
        n_batch=arguments.n_batch,
        n_threads=arguments.threads,
        n_threads_batch=arguments.threads_batch,
        flash_attention={_AUTO: None, _ON: True, _OFF: False}[arguments.flash_attention],
    )


def _check_range(flag: str, value: int, limit: int) -> None:
    if not 0 <= value <= limit:
        raise UsageError(
            f"{flag} cannot be {value:,}.",
            f"It must lie between 0, which lets the app choose, and {limit:,}.",
            "Leave it out, or give a number in that range.",
        )


def add_draft_flags(parser: argparse.ArgumentParser) -> None:
    """How to draft; without any of these nothing is drafted."""
    defaults = DraftSettings()
    group = parser.add_argument_group("speculative decoding")
    group.add_argument(
        "--draft", metavar="FILE", help="a GGUF file to draft with; its kind is recognised"
    )
    group.add_argument(
        "--drafter",
        choices=[_AUTO, *(kind.value for kind in DrafterKind)],
        help="the way to draft; auto lets the app choose",
    )
    group.add_argument(
        "--pace", choices=[pace.value for pace in Pace], default=Pace.AUTO.value,
        help="auto drafts as far as it pays on this machine, fixed always as far as it may. "
        f"Default: {Pace.AUTO}.",
    )  # fmt: skip
    group.add_argument(
        "--draft-max", type=int, metavar="N",
        help=f"the longest draft in tokens. Default: {LONGEST_PACED} under --pace auto, "
        f"{defaults.n_draft_max} under fixed.",
    )  # fmt: skip
    group.add_argument(
        "--draft-min", type=int, default=defaults.n_draft_min, metavar="N",
        help=f"drafts shorter than this are not verified. Default: {defaults.n_draft_min}.",
    )  # fmt: skip
    group.add_argument(
        "--p-min", type=float, default=defaults.p_min, metavar="X",
        help=f"stop drafting below this probability. Default: {defaults.p_min}.",
    )  # fmt: skip
    group.add_argument(
        "--draft-threads", type=int, default=0, metavar="N", help="threads to draft with"
    )
    group.add_argument(
        "--draft-gpu-layers", type=int, metavar="N",
        help="layers of the draft file on the graphics card, where the build has one",
    )  # fmt: skip
    group.add_argument(
        "--draft-cache-type", choices=[kind.value for kind in CacheType],
        default=CacheType.F16.value,
        help=f"how a draft model stores keys and values. Default: {CacheType.F16}.",
    )  # fmt: skip
    group.add_argument(
        "--verify",
        choices=[rule.value for rule in VerifyRule],
        default=VerifyRule.AUTO.value,
        help="which drafted tokens are accepted: compare writes, with a seed, the text of plain "
        "decoding but for rounding; reject accepts more at higher temperatures and keeps plain "
        "decoding's probabilities; auto rejects where that is exact and no seed is set. "
        "Default: auto.",
    )


def draft_request(arguments: argparse.Namespace) -> DraftRequest:
    """What these flags ask for. Raises `UsageError` naming what is out of range."""
    _check_range("--draft-threads", arguments.draft_threads, MAX_THREADS)
    path = None if arguments.draft is None else Path(arguments.draft)
    kind: DrafterKind | None
    if arguments.drafter is None:
        kind = DrafterKind.NONE if path is None else None
    else:
        kind = None if arguments.drafter == _AUTO else DrafterKind(arguments.drafter)
    pace = Pace(arguments.pace)
    longest = LONGEST_PACED if pace is Pace.AUTO else DraftSettings().n_draft_max
    return DraftRequest(
        kind=kind,
        path=path,
        pace=pace,
        looks_up=arguments.drafter == _AUTO,
        settings=DraftSettings(
            n_draft_max=longest if arguments.draft_max is None else arguments.draft_max,
            n_draft_min=arguments.draft_min,
            p_min=arguments.p_min,
        ),
        n_threads=arguments.draft_threads,
        n_gpu_layers=arguments.draft_gpu_layers,
        cache_type=CacheType(arguments.draft_cache_type),
    )


def read_text(path: str, what: str) -> str:
    """The text of a file a flag names. Raises `UsageError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "It is not UTF-8 text"
        raise UsageError(
            f"The {what} cannot be read.", f"{path}: {reason}.", "Check the path."
        ) from error


def read_template(path: str | None) -> tuple[str | None, str]:
    """The template override a flag names, and what to call it."""
    if path is None:
        return None, ""
    source = read_text(path, "chat template")
    if not source.strip():
        raise UsageError("The chat template is empty.", f"{path} has no text.", "Check the path.")
    return source, Path(path).name


def as_json(value: object) -> str:
    """One JSON object for standard output, on one line."""
    return json.dumps(value, ensure_ascii=False)
