"""What the window costs: decode speed with it and without it, and the time until it is there.

`python tests/benchmarks/window_cost.py [--runs N] [--tokens N]` prints medians and paired ratios;
the window needs a screen, a virtual one, or QT_QPA_PLATFORM=offscreen. Every run is a process of
its own, with and without the window in turn, so that a change of the machine's speed hits both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STARTER = ROOT / "resources" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTION = "Explain in detail how a bicycle works, part by part."
ENDLESS = ("2=-inf", "0=-inf")  # no end-of-generation token, so that every answer is as long


def with_window(tokens: int) -> None:
    """One answer through the window; prints its figures. Runs in a process of its own."""
    import psutil

    from slipstream.app import App, make_application, wait_for_state
    from slipstream.bridge.engine_client import EngineState
    from slipstream.engine.sampling import SamplerSettings
    from slipstream.storage.data_dir import data_directory

    begun = psutil.Process().create_time()
    application = make_application()
    with tempfile.TemporaryDirectory() as folder:
        app = App(application, data_directory(Path(folder)))
        app.start(STARTER)
        shown = time.time() - begun
        heavy = [name for name in ("llama_cpp", "numpy") if name in sys.modules]

        wait_for_state(app, EngineState.READY, "the engine is stuck")
        loaded = time.time() - begun
        biases = tuple((int(item.split("=")[0]), float("-inf")) for item in ENDLESS)
        app.window.cockpit.sampler_panel.set_settings(
            SamplerSettings(temperature=0, max_tokens=tokens, logit_bias=biases)
        )
        app.window.composer.set_text(QUESTION)
        app.window.composer.send_button.click()
        wait_for_state(app, EngineState.ANSWERING, "the message was not sent")
        wait_for_state(app, EngineState.READY, "the engine is stuck")
        chats = app._controller._chats
        chat = chats.load(chats.summaries()[0].id)
        assert chat is not None
        answer = chat.messages[-1].answer
        assert answer is not None
        app.close()
    rate = answer.statistics.decode_tokens_per_second
    print(json.dumps({"rate": rate, "shown": shown, "loaded": loaded, "heavy": heavy}))


def without_window(tokens: int) -> dict[str, Any]:
    """The same answer by `slipstream generate`."""
    command = [
        sys.executable, "-m", "slipstream", "generate", "--target", str(STARTER),
        "--prompt", QUESTION, "--temperature", "0", "--max-tokens", str(tokens), "--json",
    ]  # fmt: skip
    for bias in ENDLESS:
        command += ["--logit-bias", bias]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with_window(options.tokens)
        return
    window: list[dict[str, Any]] = []
    ratios: list[float] = []
    for number in range(options.runs):
        plain = without_window(options.tokens)["decode_tokens_per_second"]
        command = [sys.executable, __file__, "--one", "--tokens", str(options.tokens)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        window.append(json.loads(result.stdout))
        ratios.append(window[-1]["rate"] / plain)
        print(f"run {number + 1}: {window[-1]['rate']:.1f} with, {plain:.1f} tok/s without")
    assert not any(run["heavy"] for run in window), "loaded before the window was shown"
    print(f"window / generate: median {statistics.median(ratios):.3f}", end=" ")
    print(f"(from {min(ratios):.3f} to {max(ratios):.3f})")
    for key, words in (("shown", "launch to shown window"), ("loaded", "launch to loaded model")):
        times = [run[key] for run in window]
        print(f"{words}: median {statistics.median(times):.2f} s (max {max(times):.2f} s)")


if __name__ == "__main__":
    main()
