"""How the positions of a slider stand for values: evenly, or finest where wide ranges are small."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from slipstream.engine.sampling import SettingInfo

WIDE_RANGE = 200  # whole numbers spanning more than this get four positions per octave


@dataclass(frozen=True, slots=True)
class SliderScale:
    """The values a slider can point at, strictly rising; position i stands for `stops[i]`.

    Both ends of the range are stops. A value between two stops is shown at the nearer one, so
    position and value agree only up to that; the field beside the slider has the exact number.
    """

    stops: tuple[float, ...]

    @property
    def last(self) -> int:
        """The highest position."""
        return len(self.stops) - 1

    def value(self, position: int) -> float:
        """What a position stands for."""
        return self.stops[min(max(position, 0), self.last)]

    def position(self, value: float) -> int:
        """The position nearest to a value."""
        above = bisect_left(self.stops, value)
        if above == 0:
            return 0
        if above > self.last:
            return self.last
        below = above - 1
        return below if value - self.stops[below] < self.stops[above] - value else above


def scale_for(info: SettingInfo, whole: bool) -> SliderScale:
    """The scale that suits a setting. Its range must be bounded."""
    if info.minimum is None or info.maximum is None:
        raise ValueError(f"{info.label} has no bounded range.")
    if whole and info.maximum - info.minimum > WIDE_RANGE:
        return _octaves(int(info.minimum), int(info.maximum))
    return _even(info.minimum, info.maximum, info.step, info.decimals)


def _even(low: float, high: float, step: float, decimals: int) -> SliderScale:
    count = max(round((high - low) / step), 1)
    inner = (round(low + index * step, decimals) for index in range(count))
    return SliderScale((*inner, high))


def _octaves(low: int, high: int) -> SliderScale:
    """Every small number, then four stops per doubling: 8, 10, 12, 14, 16, 20, 24, 28, 32, …"""
    stops = list(range(low, min(8, high)))
    width = 2
    while stops[-1] < high:
        stops.extend(value for value in range(4 * width, 8 * width, width) if value < high)
        if 8 * width >= high:
            stops.append(high)
        width *= 2
    return SliderScale(tuple(stops))
