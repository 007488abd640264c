"""The share of a round that is spent outside llama.cpp: the starter, and a random model of 1 GB.

`python tests/benchmarks/loop_cost.py [--runs N] [--tokens N]` decodes without a draft and under
the auto pace with prompt lookup. Evaluating and sampling are llama.cpp's; all else is ours.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from models.tiny_llama import LlamaShape, build_tiny_llama  # noqa: E402
from slipstream.engine.events import Finished  # noqa: E402
from slipstream.engine.requests import DraftRequest, LoadRequest  # noqa: E402
from slipstream.engine.sampling import SamplerSettings  # noqa: E402
from slipstream.engine.session import GenerationRequest  # noqa: E402
from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings  # noqa: E402
from slipstream.engine.target import Target  # noqa: E402

STARTER = ROOT / "resources" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
LARGE = LlamaShape(layers=16, width=1024, heads=16, kv_heads=4, head_size=64, feed_forward=4096)
LOOKUP = DraftRequest(DrafterKind.PROMPT_LOOKUP, settings=DraftSettings(n_draft_max=16))


def share(target: Target, tokens: int) -> tuple[float, float]:
    """The share outside llama.cpp, and the milliseconds of a round."""
    ends = tuple((token, float("-inf")) for token in target.model.turn_ends)
    settings = SamplerSettings(temperature=0, max_tokens=tokens, logit_bias=ends)
    prompt = target.model.tokenize("The history of the bicycle began in")
    *_, last = target.session.generate(GenerationRequest(prompt, settings))
    assert isinstance(last, Finished)
    figures, seconds = last.speculation, last.statistics.decode_seconds
    rounds = figures.rounds + figures.plain_passes
    inside = figures.verify_seconds + figures.sample_seconds
    return 1 - inside / seconds, 1e3 * seconds / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = build_tiny_llama(Path(folder) / "large.gguf", shape=LARGE, context_length=2048)
        for path in (STARTER, large):
            target = Target(LoadRequest(path, n_ctx=2048))
            for words, draft in (("plain", DraftRequest()), ("auto", LOOKUP)):
                target.set_draft(draft)
                share(target, 16)
                found = [share(target, options.tokens) for _ in range(options.runs)]
                outside = 100 * statistics.median(part for part, _ in found)
                each = statistics.median(milliseconds for _, milliseconds in found)
                size = path.stat().st_size / 1e9
                print(f"{size:.2f} GB, {words}: {outside:.1f} % of {each:.1f} ms a round")
            target.close()


if __name__ == "__main__":
    main()
