from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slipstream.engine.speculation.drafter import DraftSettings
from slipstream.engine.speculation.guide import DraftGuide
from slipstream.engine.speculation.prompt_lookup import NgramIndex, PromptLookupDrafter


def index_of(tokens: list[int], shortest: int = 2, longest: int = 4) -> NgramIndex:
    index = NgramIndex(shortest, longest)
    for token in tokens:
        index.append(token)
    return index


def slow_continuation(tokens: list[int], limit: int, shortest: int, longest: int) -> list[int]:
    """The definition, by looking everywhere."""
    for size in range(longest, shortest - 1, -1):
        if size > len(tokens):
            continue
        end = tokens[-size:]
        for start in range(len(tokens) - 1, size - 1, -1):
            if tokens[start - size : start] == end:
                copied = list(tokens[start:])
                while len(copied) < limit:
                    copied.append(copied[len(copied) - (len(tokens) - start)])
                return copied[:limit]
    return []


def test_what_followed_before_is_drafted() -> None:
    assert index_of([1, 2, 3, 9, 8, 1, 2, 3]).continuation(2)[0] == (9, 8)


def test_nothing_is_drafted_without_a_match() -> None:
    assert index_of([1, 2, 3, 4]).continuation(4)[0] == ()
    assert index_of([]).continuation(4)[0] == ()


def test_the_longest_match_counts_before_a_more_recent_one() -> None:
    tokens = [7, 1, 2, 50, 8, 1, 2, 60, 7, 1, 2]
    assert index_of(tokens, 2, 3).continuation(1)[0] == (50,)


def test_the_most_recent_of_equal_matches_counts() -> None:
    assert index_of([1, 2, 50, 1, 2, 60, 1, 2], 2, 2).continuation(1)[0] == (60,)


def test_a_repeating_text_goes_on_repeating() -> None:
    assert index_of([1, 2, 1, 2, 1, 2]).continuation(5)[0] == (1, 2, 1, 2, 1)


def test_the_match_says_how_long_it_is() -> None:
    index = index_of([1, 2, 3, 9, 8, 1, 2, 3])
    assert index.continuation(1)[1] == 3
    index.append(7)
    assert index.continuation(1) == ((), 0)
    drafter = PromptLookupDrafter(DraftSettings(n_draft_max=3))
    draft = drafter.draft([1, 2, 3, 4, 5, 6, 1, 2, 3], 2, DraftGuide())
    assert draft.confidences == (3 / 9, 3 / 9)  # of matches of up to 8 tokens


@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 9))
def test_it_equals_looking_everywhere(tokens: list[int], limit: int) -> None:
    assert list(index_of(tokens).continuation(limit)[0]) == slow_continuation(tokens, limit, 2, 4)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.lists(st.integers(0, 2), max_size=10)), max_size=8)
)
def test_truncating_leaves_what_growing_alone_would(
    steps: list[tuple[int, list[int]]],
) -> None:
    index = NgramIndex(2, 4)
    expected: list[int] = []
    for length, more in steps:
        index.truncate(length)
        del expected[length:]
        for token in more:
            index.append(token)
        expected += more
        assert index.tokens == expected
        assert index._latest == index_of(expected)._latest


def test_the_drafter_follows_the_history_and_its_limits() -> None:
    drafter = PromptLookupDrafter(DraftSettings(n_draft_max=3))
    history = [1, 2, 3, 4, 5, 6, 1, 2, 3]
    assert drafter.begin(0, 0) == 0
    assert drafter.draft(history, 10, DraftGuide()).tokens == (4, 5, 6)
    assert drafter.draft(history, 2, DraftGuide()).tokens == (4, 5)
    assert drafter.begin(4, 4) == 4
    assert drafter.draft([1, 2, 3, 4, 2, 3], 3, DraftGuide()).tokens == ()


def test_short_drafts_can_be_refused() -> None:
    drafter = PromptLookupDrafter(DraftSettings(n_draft_max=4, n_draft_min=3))
    history = [1, 2, 3, 4, 5, 1, 2, 3]
    assert drafter.draft(history, 2, DraftGuide()).tokens == ()
    assert drafter.draft(history, 3, DraftGuide()).tokens == (4, 5, 1)
