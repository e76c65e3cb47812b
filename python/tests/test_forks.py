"""What the children of one process do one after the other; tests/gpu/test_forks.sh forks them."""

import os
import threading
import time

import pytest

from fa_verify import _forks


@pytest.fixture
def turns(monkeypatch):
    monkeypatch.setattr(_forks, "_turns", os.memfd_create("turns"))
    yield
    os.close(_forks._turns)


def seconds_of_a_turn(patience_s):
    started = time.monotonic()
    with _forks.in_turn(patience_s):
        return time.monotonic() - started


def test_one_at_a_time(turns):
    inside, most = [], []

    def work():
        with _forks.in_turn():
            inside.append(1)
            time.sleep(0.02)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_patience_ends(turns):
    with _forks.in_turn():
        assert 0.2 <= seconds_of_a_turn(0.2) < 5
    assert seconds_of_a_turn(30) < 5


def test_whoever_is_no_child_waits_for_nobody():
    with _forks.in_turn():
        assert seconds_of_a_turn(30) < 5
