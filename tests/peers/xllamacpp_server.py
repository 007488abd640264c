"""Answers prompts on llama.cpp's own server with a draft model, and prints what it counted.

Runs as a process of its own: xllamacpp carries a whole llama.cpp, which must not meet the one of
llama-cpp-python. One JSON object on standard input, one on standard output. Must not import
slipstream or llama_cpp.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import xllamacpp


def server(job: dict[str, Any]) -> xllamacpp.Server:
    """One slot and one draft model that always drafts `n_draft_max` greedy tokens."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = job["target"]
    parameters.n_ctx = job["n_ctx"]
    parameters.n_parallel = 1
    parameters.fit_params = False  # it would choose sizes of its own
    parameters.warmup = False
    kinds = xllamacpp.common_speculative_type
    parameters.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    draft = parameters.speculative.draft
    draft.mparams.path = job["draft"]
    draft.n_max = job["n_draft_max"]
    draft.n_min = 0
    draft.p_min = 0.0
    for cpu in (parameters, draft):
        cpu.cpuparams.n_threads = cpu.cpuparams_batch.n_threads = job["n_threads"]
    return xllamacpp.Server(parameters)


def timings(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The server's `timings` of each answer. The prompts are token ids and used as they are."""
    asked = server(job)
    settings = {"max_tokens": job["max_tokens"], "temperature": 0, "cache_prompt": False}
    return [
        asked.handle_completions({"prompt": prompt, **settings})["timings"]
        for prompt in job["prompts"]
    ]


def main() -> None:
    # llama.cpp logs to standard output as well, so the result takes that stream for itself
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as result:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answers = timings(json.load(sys.stdin))
        json.dump({"version": xllamacpp.__version__, "timings": answers}, result)


if __name__ == "__main__":
    main()
