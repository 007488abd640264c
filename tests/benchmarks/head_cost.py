"""What an EAGLE-3 head costs beside the starter: three drafts and the catch-up, each round.

`python tests/benchmarks/head_cost.py [--runs N] [--tokens N]`. The head has random weights, so
that nothing is accepted: a round reads one new state and drafts three tokens.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from models.starter_eagle3 import build_starter_eagle3  # noqa: E402
from slipstream.engine.events import Finished  # noqa: E402
from slipstream.engine.requests import DraftRequest, LoadRequest, Pace  # noqa: E402
from slipstream.engine.sampling import SamplerSettings  # noqa: E402
from slipstream.engine.session import GenerationRequest  # noqa: E402
from slipstream.engine.speculation.drafter import DraftSettings  # noqa: E402
from slipstream.engine.target import Target  # noqa: E402

STARTER = ROOT / "resources" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
DEPTH = 3
ENDLESS = ((2, float("-inf")), (0, float("-inf")))


def answered(target: Target, tokens: int) -> Finished:
    settings = SamplerSettings(temperature=0, max_tokens=tokens, logit_bias=ENDLESS)
    prompt = target.model.tokenize("The history of the bicycle began in")
    *_, last = target.session.generate(GenerationRequest(prompt, settings))
    assert isinstance(last, Finished)
    return last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=96)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        head = build_starter_eagle3(Path(folder) / "head.gguf", STARTER)
        target = Target(LoadRequest(STARTER))
        print(f"head of {head.stat().st_size / 1e6:.1f} MB, {target.facts.n_threads} threads")
        plain, drafting, passes, outside = [], [], [], []
        for _ in range(options.runs):
            target.set_draft(DraftRequest())
            without = answered(target, options.tokens).speculation
            plain.append(without.verify_seconds / without.plain_passes)
            settings = DraftSettings(n_draft_max=DEPTH)
            target.set_draft(DraftRequest(None, head, settings, pace=Pace.FIXED))
            finished = answered(target, options.tokens)
            figures = finished.speculation
            rounds = figures.rounds + figures.plain_passes
            drafting.append(figures.draft_seconds / rounds)
            passes.append(figures.verify_seconds / rounds)
            inside = figures.draft_seconds + figures.verify_seconds + figures.sample_seconds
            outside.append(1 - inside / finished.statistics.decode_seconds)
        target.close()
    for words, values in (
        ("plain pass", plain),
        (f"pass over {DEPTH + 1} rows", passes),
        (f"{DEPTH} drafts and the catch-up", drafting),
    ):
        print(f"{words}: median {1e3 * statistics.median(values):.2f} ms")
    print(f"neither drafting, evaluating nor sampling: {100 * statistics.median(outside):.1f} %")


if __name__ == "__main__":
    main()
