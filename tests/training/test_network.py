"""Interfaces, keep-alive, and failures of the network in one line."""

import os
import socket
import sys
from datetime import timedelta

import pytest

from regard.errors import RegardError
from regard.training import rendezvous
from regard.training.network import (
    GLOO_INTERFACE,
    LINK_TIMEOUT,
    detect_lost_links,
    gloo_interface,
    source_address,
)
from regard.training.rendezvous import join_rendezvous

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="options of Linux's sockets")


def connect():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return socket.create_connection(server.getsockname())


@linux_only
def test_connections_made_inside_are_closed_when_their_link_is_lost():
    with connect() as before:
        with detect_lost_links():
            inside = connect()
        with inside:
            assert before.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
            assert inside.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            idle, interval, probes, milliseconds = (
                inside.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
                for name in ("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
            )
            assert timedelta(seconds=idle + interval * probes) == LINK_TIMEOUT
            assert timedelta(milliseconds=milliseconds) == LINK_TIMEOUT


@linux_only
def test_processes_of_one_host_use_the_loopback_interface(monkeypatch):
    monkeypatch.delenv(GLOO_INTERFACE, raising=False)
    with gloo_interface("10.0.0.1", ["10.0.0.1", "10.0.0.1"]):
        assert os.environ[GLOO_INTERFACE] == "lo"
    assert GLOO_INTERFACE not in os.environ


def test_unknown_addresses_leave_the_choice_to_gloo(monkeypatch):
    monkeypatch.delenv(GLOO_INTERFACE, raising=False)
    with gloo_interface("203.0.113.1", ["203.0.113.1", "203.0.113.2"]):
        assert GLOO_INTERFACE not in os.environ


def test_requested_interface_must_exist(monkeypatch):
    monkeypatch.setenv(GLOO_INTERFACE, "eth99")
    message = "^GLOO_SOCKET_IFNAME must name a network interface of this host .*'eth99'$"
    with pytest.raises(RegardError, match=message), gloo_interface("10.0.0.1", ["10.0.0.1"]):
        pass


def test_source_address_of_a_local_and_of_an_unknown_host():
    assert source_address("127.0.0.1") == "127.0.0.1"
    assert source_address("name.invalid") == ""


def test_port_in_use_is_one_line(monkeypatch):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(port))
        monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
        message = f"^port {port} of this host is in use by another program; choose another"
        with pytest.raises(RegardError, match=message):
            join_rendezvous(0, 2, "gloo")


def test_unreachable_store_is_one_line(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # free again below
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setattr(rendezvous, "JOIN_TIMEOUT", timedelta(seconds=0.3))
    monkeypatch.setattr(rendezvous, "AGENT_TIMEOUT", timedelta(seconds=0.3))
    message = f"^cannot reach 127.0.0.1:{port}, where the processes meet"
    with pytest.raises(RegardError, match=message) as caught:
        join_rendezvous(1, 2, "gloo")
    assert "\n" not in str(caught.value)
