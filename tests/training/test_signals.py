import signal
import threading

import pytest

from regard.training.signals import stop_requested


def test_first_signal_requests_a_stop_and_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with stop_requested() as should_stop:
        assert not should_stop()
        signal.raise_signal(signal.SIGTERM)
        assert should_stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_thread_leaves_signal_handlers_alone():
    before, observed = signal.getsignal(signal.SIGINT), []

    def work():
        with stop_requested() as should_stop:
            observed.append((should_stop(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert observed == [(False, before)]
