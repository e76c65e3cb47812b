"""Long lists in shares (share.h says more)."""
import os
import time


def share(items: list) -> list:
    """The items that are in the share, in their order; all of them without FA_TEST_SHARE."""
    n = int(os.environ.get("FA_TEST_SHARE", "1"))
    day = int(os.environ.get("FA_TEST_DAY", time.time() // 86400))
    return [item for i, item in enumerate(items) if n <= 1 or (i + day) % n == 0]
