from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipstream.engine.stops import StopMatcher


def run(stops: list[str], pieces: list[str]) -> tuple[str, str, list[str]]:
    """(all text released, the stop string found, what each feed released)."""
    matcher = StopMatcher(stops)
    released = [matcher.feed(piece) for piece in pieces]
    text = "".join(released)
    return (text if matcher.found else text + matcher.finish()), matcher.found, released


def test_without_stop_strings_text_passes_through() -> None:
    assert run([], ["ab", "c"]) == ("abc", "", ["ab", "c"])


def test_a_stop_string_is_found_across_borders_and_its_first_half_never_leaks() -> None:
    assert run(["STOP"], ["say S", "TO", "P now"]) == ("say ", "STOP", ["say ", "", ""])


def test_text_that_only_resembles_a_stop_string_is_released_as_soon_as_it_differs() -> None:
    assert run(["STOP"], ["ST", "AY"]) == ("STAY", "", ["", "STAY"])


def test_the_longest_safe_prefix_is_released_at_once() -> None:
    assert run(["aab"], ["aaa"])[2] == ["a"]


def test_what_is_held_comes_out_at_the_end() -> None:
    assert run(["STOP"], ["ST"]) == ("ST", "", [""])


def test_nothing_is_released_after_a_stop_string() -> None:
    matcher = StopMatcher(["x"])
    assert matcher.feed("axb") == "a"
    assert matcher.feed("more") == ""
    assert matcher.finish() == ""


@pytest.mark.parametrize(
    ("stops", "text", "expected"),
    [
        (["ab", "abc"], "xabc", ("x", "ab")),  # the one complete first
        (["bc", "abc"], "xabc", ("x", "abc")),  # the longer of those complete together
        (["abcd", "bc"], "abcd", ("a", "bc")),
    ],
)
def test_the_first_complete_stop_string_counts(
    stops: list[str], text: str, expected: tuple[str, str]
) -> None:
    assert run(stops, [text])[:2] == expected


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=4),
    st.lists(st.text("abc", max_size=5), max_size=12),
)
def test_the_outcome_does_not_depend_on_the_cutting(stops: list[str], pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert run(stops, pieces)[:2] == run(stops, [whole])[:2] == run(stops, list(whole))[:2]
    text, found, _ = run(stops, pieces)
    assert whole.startswith(text + found)
    assert not any(stop in text for stop in stops)
