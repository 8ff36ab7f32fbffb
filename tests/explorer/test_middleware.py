import asyncio
import http.client
import socket

import pytest

from regard.explorer import middleware as door_file
from regard.explorer.limits import LIMITS
from regard.explorer.middleware import HEADERS, Address, Door

PORT = 8765
TOKEN = "a-token-of-many-letters"


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LocalHost:8765", "[::1]:8765"]
)
def test_the_server_answers_to_its_own_names(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:8765.evil.example",
        "127.0.0.1:8765@evil.example",
        "127.0.0.2:8765",
        "localhost.:8765",
        "0.0.0.0:8765",
        "",
    ],
)
def test_it_answers_to_no_other_name(client, refused, host):
    assert "has no other name" in refused(client.get("/api/runs", headers={"host": host}), 403)


def test_the_pages_own_origin_may_ask_and_no_other(client, refused):
    form = {"run": "small", "text": "the cat"}
    for origin in ("http://127.0.0.1:8765", "HTTP://127.0.0.1:8765"):
        answer = client.post("/api/translate", json=form, headers={"origin": origin})
        assert answer.status_code == 200
    for origin in ("http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:80"):
        answer = client.post("/api/translate", json=form, headers={"origin": origin})
        assert "another site" in refused(answer, 403)
        assert "access-control-allow-origin" not in answer.headers


def test_a_named_host_is_a_name_too_and_anywhere_is_every_address_in_numbers():
    assert Address("attention.example", 80).is_called("attention.example")
    assert not Address("attention.example", 80).is_called("other.example")
    anywhere = Address("0.0.0.0", PORT)
    assert anywhere.is_called(f"192.168.7.9:{PORT}") and anywhere.is_called(f"[fe80::1]:{PORT}")
    assert anywhere.is_called(f"{socket.gethostname()}:{PORT}")
    assert not anywhere.is_called(f"evil.example:{PORT}")


@pytest.mark.parametrize(
    ("host", "private", "url"),
    [
        ("127.0.0.1", True, "http://127.0.0.1:8765/"),
        ("localhost", True, "http://localhost:8765/"),
        ("::1", True, "http://[::1]:8765/"),
        ("192.168.7.9", False, "http://192.168.7.9:8765/"),
        ("0.0.0.0", False, f"http://{socket.gethostname()}:8765/"),
    ],
)
def test_only_loopback_is_private(host, private, url):
    assert (Address(host, PORT).private, Address(host, PORT).url) == (private, url)


def test_every_answer_forbids_the_page_what_it_does_not_need(client):
    for path in ("/api/runs", "/nothing", "/viz/viewer.js", "/docs", "/openapi.json"):
        headers = client.get(path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert "server" not in headers
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy and policy.startswith("default-src 'none'; script-src 'self';")
    assert client.get("/api/runs").headers["cache-control"] == "no-store"
    assert client.get("/viz/viewer.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/", "/api/runs", "/viz/viewer.js", "/openapi.json", "/docs"])
@pytest.mark.parametrize("given", [None, "", "wrong", TOKEN + "x", TOKEN.upper()])
def test_without_the_token_nothing_is_shown(visit, trained, refused, path, given):
    client = visit(trained, token=TOKEN)
    headers = {} if given is None else {"authorization": f"Bearer {given}"}
    assert refused(client.get(path, headers=headers), 401).startswith("a token is needed")
    if given is not None:
        client.cookies.set(f"regard-{PORT}", given)
        assert client.get(path, params={"token": given}).status_code == 401


def test_the_token_opens_as_a_header_or_as_a_cookie_from_the_first_visit(visit, trained):
    client = visit(trained, token=TOKEN)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/runs", headers=bearer).status_code == 200
    assert client.get("/api/runs", params={"token": TOKEN}).status_code == 401
    first = client.get("/", params={"token": TOKEN, "run": "small"})
    assert (first.status_code, first.headers["location"]) == (303, "/?run=small")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert client.get("/api/runs").status_code == 200


def test_a_strange_token_is_just_wrong(visit, trained, refused):
    client = visit(trained, token=TOKEN)
    for given in (b"Bearer \xff\xfe", b"Bearer", b"Basic " + TOKEN.encode(), b"bearer  " * 99):
        refused(client.get("/api/runs", headers={b"authorization": given}), 401)


@pytest.mark.parametrize("announced", [True, False])
def test_a_request_that_is_too_large_is_refused(client, refused, announced):
    body = b" " * (LIMITS.max_body_bytes + 1)
    content = body if announced else iter([body[:1000], body[1000:]])
    answer = client.post("/api/translate", content=content)
    assert ("content-length" in answer.request.headers) == announced
    assert f"at most {LIMITS.max_body_bytes} bytes" in refused(answer, 413)
    assert answer.headers["connection"] == "close"


def ask(door, receive, *headers, path="/api/translate"):
    """Send a request by hand, and give the status of the answer, if there is one."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8765"), *headers],
    }
    asyncio.run(door(scope, receive, send))
    return [message["status"] for message in sent if message["type"] == "http.response.start"]


async def never_asked(*_):
    raise AssertionError("no request should have come so far")


def test_a_request_that_does_not_come_to_its_end_reaches_nobody():
    async def drips():
        await asyncio.sleep(0.001)
        return {"type": "http.request", "body": b" ", "more_body": True}

    assert ask(Door(never_asked, Address("127.0.0.1", PORT), seconds=0.05), drips) == [408]


def test_a_client_that_leaves_halfway_is_not_answered():
    parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def breaks_off():
        return parts.pop(0)

    assert ask(Door(never_asked, Address("127.0.0.1", PORT)), breaks_off) == []


def test_two_hosts_are_none():
    async def nothing():
        return {"type": "http.request"}

    again = (b"host", b"127.0.0.1:8765")
    assert ask(Door(never_asked, Address("127.0.0.1", PORT)), nothing, again) == [403]


@pytest.mark.parametrize("announced", [True, False])
def test_a_request_that_is_too_large_is_read_to_its_end_before_it_is_refused(announced):
    left = [b"x" * 100_000] * 9

    async def sends():
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    headers = [(b"content-length", b"900000")] if announced else []
    assert ask(Door(never_asked, Address("127.0.0.1", PORT)), sends, *headers) == [413]
    assert left == []


def test_no_more_of_it_is_read_than_has_a_bound(monkeypatch):
    monkeypatch.setattr(door_file, "REST", 1000)
    read = []

    async def sends_without_end():
        read.append(100)
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    announced = (b"content-length", b"900000")
    assert ask(Door(never_asked, Address("127.0.0.1", PORT)), sends_without_end, announced) == [413]
    assert sum(read) == 1000


def test_nor_is_anybody_waited_for_who_sends_nothing_more():
    async def sends_nothing():
        await asyncio.Event().wait()

    announced = (b"content-length", b"900000")
    door = Door(never_asked, Address("127.0.0.1", PORT), seconds=0.05)
    assert ask(door, sends_nothing, announced) == [413]


def test_who_asks_before_sending_is_refused_at_once():
    headers = [(b"content-length", b"900000"), (b"expect", b"100-continue")]
    assert ask(Door(never_asked, Address("127.0.0.1", PORT)), never_asked, *headers) == [413]


def test_a_client_that_sends_all_before_it_listens_hears_that_it_was_too_much(site):
    place = site.removeprefix("http://").rstrip("/")
    asked = http.client.HTTPConnection(place, timeout=60)
    asked.request("POST", "/api/traces/open", body=b"x" * (LIMITS.max_trace_bytes + (1 << 20)))
    assert asked.getresponse().status == 413
    asked.close()
