"""Work that grows with its size and no faster: the CPU times of two sizes, which do not depend on other processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tests.sizes import is_small

_TIMES = 8
_SLACK = 3.0  # for the noise of caches and other processes; what is quadratic takes `_TIMES` times as long as it should
_ROUNDS = 5


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Assert that `work` of eight times a size takes about eight times as long, and not 64 times.

    The shortest of up to five measurements counts. `size` is the larger of the two, and should take milliseconds; it
    is halved unless all tests run.
    """
    if is_small():
        size //= 2
    small_size = size // _TIMES
    work(small_size)  # what is loaded or compiled at the first call
    small_s = large_s = math.inf
    for _ in range(_ROUNDS):
        small_s = min(small_s, _cpu_seconds(work, small_size))
        large_s = min(large_s, _cpu_seconds(work, size))
        if large_s <= _SLACK * _TIMES * small_s:
            return
    raise AssertionError(f"size {small_size} takes {small_s:.4f} s, size {size} takes {large_s:.4f} s")


def _cpu_seconds(work: Callable[[int], object], size: int) -> float:
    began = time.thread_time()
    work(size)
    return time.thread_time() - began
