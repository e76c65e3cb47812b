"""Long lists in shares (share.h says more)."""
import os
import time


def _now() -> tuple:
    """In how many shares lists are tried, and the day."""
    return max(1, int(os.environ.get("FA_TEST_SHARE", "1"))), int(os.environ.get("FA_TEST_DAY", time.time() // 86400))


def share(items: list) -> list:
    """The items that are in the share, in their order; all of them without FA_TEST_SHARE."""
    n, day = _now()
    return [item for i, item in enumerate(items) if (i + day) % n == 0]


def share_of_neighbours(items: list) -> list:
    """The same in shares of items that lie beside each other, where neighbours need the same things."""
    n, day = _now()
    part = day % n
    return items[len(items) * part // n:len(items) * (part + 1) // n]
