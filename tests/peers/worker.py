"""Answers prompts one after the other in a process of its own, for paired timing.

`python tests/peers/worker.py PROGRAM` reads a job as one line of JSON, then a line for each prompt
(token ids and the most tokens wanted), and prints a line of JSON for each: the tokens written and
the seconds from the first to the last of them. PROGRAM is slipstream, llama-cpp-python (its
high-level class), xllamacpp (llama.cpp's own server) or server (the same, as `make server` has
built it): only that one is imported, since each carries a llama.cpp that must not meet another.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

Job = dict[str, Any]
Answer = Callable[[list[int], int], tuple[int, float]]


def slipstream(job: Job) -> Answer:
    from slipstream.engine.events import Finished
    from slipstream.engine.requests import DraftRequest, LoadRequest, Pace
    from slipstream.engine.sampling import SamplerSettings
    from slipstream.engine.session import GenerationRequest
    from slipstream.engine.speculation.drafter import DrafterKind, DraftSettings
    from slipstream.engine.target import Target

    target = Target(
        LoadRequest(Path(job["target"]), n_ctx=job["n_ctx"], n_threads=job["n_threads"])
    )
    draft = job.get("draft")
    auto = job["speculation"] == "auto"
    settings = DraftSettings(n_draft_max=16 if auto else job["n_draft_max"])
    pace = Pace.AUTO if auto else Pace.FIXED
    if job["speculation"] != "none":
        kind = None if draft else DrafterKind.PROMPT_LOOKUP
        path = Path(draft) if draft else None
        target.set_draft(DraftRequest(kind, path, settings, pace=pace, looks_up=auto))

    def answer(prompt: list[int], max_tokens: int) -> tuple[int, float]:
        request = GenerationRequest(prompt, SamplerSettings(temperature=0, max_tokens=max_tokens))
        *_, last = target.session.generate(request)
        assert isinstance(last, Finished)
        return last.statistics.generated_tokens, last.statistics.decode_seconds

    return answer


def llama_cpp_python(job: Job) -> Answer:
    from llama_cpp import Llama
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    lookup = job["speculation"] == "lookup"
    llama = Llama(
        job["target"],
        n_ctx=job["n_ctx"],
        n_threads=job["n_threads"],
        n_threads_batch=job["n_threads"],
        draft_model=LlamaPromptLookupDecoding(num_pred_tokens=job["n_draft_max"])
        if lookup
        else None,
        verbose=False,
    )

    def answer(prompt: list[int], max_tokens: int) -> tuple[int, float]:
        llama.reset()
        first = last = 0.0
        written = 0
        stream = llama.create_completion(
            prompt, stream=True, temperature=0.0, max_tokens=max_tokens, repeat_penalty=1.0
        )
        for _chunk in stream:
            last = time.perf_counter()
            first = first or last
            written += 1
        return llama.n_tokens - len(prompt) + 1 if lookup else written, last - first

    return answer


def xllamacpp(job: Job) -> Answer:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = job["target"]
    parameters.n_ctx = job["n_ctx"]
    parameters.n_parallel = 1
    parameters.fit_params = False  # it would choose sizes of its own
    kinds = xllamacpp.common_speculative_type
    draft = parameters.speculative.draft
    if job["speculation"] == "draft":
        parameters.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft.mparams.path = job["draft"]
        draft.n_max = job["n_draft_max"]
    elif job["speculation"] == "lookup":
        parameters.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    for cpu in (parameters, draft):
        cpu.cpuparams.n_threads = cpu.cpuparams_batch.n_threads = job["n_threads"]
    server = xllamacpp.Server(parameters)

    def answer(prompt: list[int], max_tokens: int) -> tuple[int, float]:
        settings = {"max_tokens": max_tokens, "temperature": 0, "cache_prompt": False}
        timings = server.handle_completions({"prompt": prompt, **settings})["timings"]
        return timings["predicted_n"], timings["predicted_ms"] / 1e3

    return answer


def server(job: Job) -> Answer:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        job["server"], "--model", job["target"], "--ctx-size", job["n_ctx"], "--parallel", 1,
        "--threads", job["n_threads"], "--threads-batch", job["n_threads"],
        "--host", "127.0.0.1", "--port", port,
    ]  # fmt: skip
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    atexit.register(process.terminate)
    address = f"http://127.0.0.1:{port}"
    _wait_for(f"{address}/health", process)

    def answer(prompt: list[int], max_tokens: int) -> tuple[int, float]:
        asked = {
            "prompt": prompt, "n_predict": max_tokens, "temperature": 0, "cache_prompt": False
        }  # fmt: skip
        request = urllib.request.Request(
            f"{address}/completion",
            json.dumps(asked).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            timings = json.load(response)["timings"]
        return timings["predicted_n"], timings["predicted_ms"] / 1e3

    return answer


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server ended")


PROGRAMS = {
    "slipstream": slipstream,
    "llama-cpp-python": llama_cpp_python,
    "xllamacpp": xllamacpp,
    "server": server,
}


def main() -> None:
    # llama.cpp logs to standard output as well, so the results take that stream for themselves
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as results:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answer = PROGRAMS[sys.argv[1]](json.loads(sys.stdin.readline()))
        print("{}", file=results, flush=True)  # ready
        for line in sys.stdin:
            asked = json.loads(line)
            tokens, seconds = answer(asked["prompt"], asked["max_tokens"])
            print(json.dumps({"tokens": tokens, "seconds": seconds}), file=results, flush=True)


if __name__ == "__main__":
    main()
