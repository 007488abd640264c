"""Decides which drafted tokens the target would have written itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slipstream.engine.speculation.drafter import Draft


@dataclass(frozen=True, slots=True)
class Verdict:
    """The target's own tokens: the first `accepted` of them are the draft's.

    The last one is new (a bonus or a correction), unless an accepted one ended the generation.
    """

    tokens: tuple[int, ...]
    accepted: int
    ended: bool  # the last token ends the generation


def verify(
    draft: Draft,
    sample: Callable[[int], int],
    ends_generation: Callable[[int], bool],
) -> Verdict:
    """Sample-and-compare: draw the target's own token for each row until one differs.

    `sample(i)` draws from the row after the i-th drafted token (row 0 follows the pending token)
    and remembers what it drew. One draw per emitted token, so the text equals plain decoding's
    (llama.cpp, common/sampling.cpp, `common_sampler_sample_and_accept_n`).
    """
    tokens: list[int] = []
    accepted = 0
    for row in range(len(draft.tokens) + 1):
        token = sample(row)
        tokens.append(token)
        matches = row < len(draft.tokens) and draft.tokens[row] == token
        accepted += matches
        if ends_generation(token):
            return Verdict(tuple(tokens), accepted, ended=True)
        if not matches:
            break
    return Verdict(tuple(tokens), accepted, ended=False)
