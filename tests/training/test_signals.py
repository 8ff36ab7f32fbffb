import signal
import threading

import pytest

from regard.training.signals import stop_requested


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_requests_a_stop_and_ctrl_c_after_it_interrupts(number):
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with stop_requested() as should_stop:
        assert not should_stop()
        signal.raise_signal(number)
        assert should_stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert {one: signal.getsignal(one) for one in before} == before


def test_closing_terminal_may_send_several_signals():
    with stop_requested() as should_stop:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        assert should_stop()


def test_hangup_stays_ignored_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_requested() as should_stop:
            signal.raise_signal(signal.SIGHUP)
            assert not should_stop()
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_thread_leaves_signal_handlers_alone():
    before, observed = signal.getsignal(signal.SIGINT), []

    def work():
        with stop_requested() as should_stop:
            observed.append((should_stop(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert observed == [(False, before)]
