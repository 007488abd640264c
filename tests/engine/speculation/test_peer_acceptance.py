"""A draft model is accepted as often as on llama.cpp's own server: same files, prompts and depth.

The server runs in-process in xllamacpp, which is optional: `make peers` installs it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from models.quantised import quantised
from slipstream.chat.records import Message, Role
from slipstream.engine.events import Finished, TextRun
from slipstream.engine.llama import lib
from slipstream.engine.requests import AnswerRequest, DraftRequest, LoadRequest, Pace
from slipstream.engine.sampling import SamplerSettings
from slipstream.engine.session import GenerationRequest
from slipstream.engine.speculation.drafter import DraftSettings
from slipstream.engine.target import Target

pytestmark = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None,
        reason="xllamacpp, which runs llama.cpp's own server, is not installed (make peers)",
    ),
]

PEER = Path(__file__).resolve().parents[2] / "peers" / "xllamacpp_server.py"
POINTS = 5
"""How far apart the two rates may be, in percentage points over all prompts together.

Not closer: the two libraries are different builds, and a greedy answer of so small a model goes
another way as soon as one of them rounds two near candidates the other way round.
"""
N_CTX = 1024
MAX_TOKENS = 96
N_THREADS = 2
QUESTIONS = (
    "Explain what a rainbow is.",
    "Write a short story about a lighthouse keeper.",
    "List five tips for sleeping better.",
    "Why is the sky blue?",
    "Write a Python function that returns the n-th Fibonacci number.",
    "Give me a recipe for pancakes.",
    "What is the difference between a virus and a bacterium?",
    "Write a polite e-mail asking for a day off.",
    "How does a bicycle stay upright?",
    "Describe the city of Paris to a child.",
    "What should I pack for a week in the mountains?",
    "Explain how a bill becomes a law.",
    "Write a poem about the sea in autumn.",
    "Who was Isaac Newton, and what did he find out?",
    "Compare tea and coffee.",
    "Summarise the story of Little Red Riding Hood.",
)


class Count(NamedTuple):
    """Drafted tokens that the target saw, and those of them that stand."""

    accepted: int
    drafted: int

    @property
    def rate(self) -> float:
        return self.accepted / self.drafted


def total(counts: Sequence[Count]) -> Count:
    return Count(sum(one.accepted for one in counts), sum(one.drafted for one in counts))


def request(target: Target, question: str) -> GenerationRequest:
    asked = AnswerRequest(
        (Message("", Role.USER, question, datetime.now(UTC)),),
        system_prompt="You are a helpful assistant.",
        settings=SamplerSettings(temperature=0, max_tokens=MAX_TOKENS),
    )
    return target.prepare(asked).request


def counted_like_the_server(target: Target, asked: GenerationRequest) -> Count:
    """One answer's count.

    The server calls every token accepted that an accepting round emits, but the last one, which
    it takes for the target's own (server-context.cpp: `n_accepted = ids.size() - 1`). Where a
    drafted end of the answer is right and drafted tokens follow it, that last one is the draft's
    (sampling.cpp: `common_sampler_sample_and_accept_n` breaks there). Slipstream counts it, the
    server does not: one token per answer at most. All else is counted alike: both leave out the
    token after the prefill and shorten the last draft to the tokens still wanted, and all that
    is drafted is verified.
    """
    events = list(target.session.generate(asked))
    finished = events[-1]
    assert isinstance(finished, Finished)
    figures = finished.speculation
    assert figures.verified == figures.drafted
    last = [event for event in events if isinstance(event, TextRun)][-1]
    early_end = last.accepted_flags[-1] and len(last.token_ids) < last.drafted
    return Count(figures.accepted - early_end, figures.verified)


def slipstream(target_path: Path, draft_path: Path, depth: int) -> tuple[Count, list[list[int]]]:
    """The count over all questions, and their prompts as token ids."""
    target = Target(LoadRequest(target_path, n_ctx=N_CTX, n_threads=N_THREADS))
    try:
        target.set_draft(
            DraftRequest(None, draft_path, DraftSettings(n_draft_max=depth), pace=Pace.FIXED)
        )
        requests = [request(target, question) for question in QUESTIONS]
        prompts = [list(asked.prompt) for asked in requests]
        return total([counted_like_the_server(target, asked) for asked in requests]), prompts
    finally:
        target.close()


def server(target: Path, draft: Path, depth: int, prompts: list[list[int]]) -> Count:
    job = {
        "target": str(target),
        "draft": str(draft),
        "n_draft_max": depth,
        "n_ctx": N_CTX,
        "n_threads": N_THREADS,
        "max_tokens": MAX_TOKENS,
        "prompts": prompts,
    }
    command = [sys.executable, str(PEER)]
    done = subprocess.run(
        command, input=json.dumps(job), capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-4000:]
    timings = json.loads(done.stdout)["timings"]
    assert len(timings) == len(prompts)
    # without a single draft both keys are missing
    return total([Count(t.get("draft_n_accepted", 0), t.get("draft_n", 0)) for t in timings])


def assert_alike(target: Path, draft: Path, depth: int) -> None:
    ours, prompts = slipstream(target, draft, depth)
    theirs = server(target, draft, depth, prompts)
    print(f"accepted at depth {depth}: {ours.rate:.1%} {ours}, server {theirs.rate:.1%} {theirs}")
    assert min(ours.drafted, theirs.drafted) > 1000
    assert abs(ours.rate - theirs.rate) * 100 <= POINTS


def test_the_starter_with_a_q4_0_draft(starter: Path, tmp_path: Path) -> None:
    draft = quantised(starter, tmp_path, "q4_0", lib.LLAMA_FTYPE_MOSTLY_Q4_0)
    assert_alike(starter, draft, depth=4)


def test_an_f16_target_with_a_q4_0_draft(starter: Path, tmp_path: Path) -> None:
    target = quantised(starter, tmp_path, "f16", lib.LLAMA_FTYPE_MOSTLY_F16)
    draft = quantised(starter, tmp_path, "q4_0", lib.LLAMA_FTYPE_MOSTLY_Q4_0)
    assert_alike(target, draft, depth=3)
