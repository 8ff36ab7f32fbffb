import http.client
import socket

import anyio
import anyio.to_thread
import pytest

from helpers.explorer import SCRIPT_PATH, error_message
from regard.explorer import ServerAddress, secure_app
from regard.explorer.schemas import LIMITS
from regard.web.body_limit import BodyLimitMiddleware
from regard.web.error_handlers import error_response
from regard.web.middleware import SECURITY_HEADERS, ConcurrencyLimitMiddleware

PORT = 8765
ADDRESS = ServerAddress("127.0.0.1", PORT)
WAIT_SECONDS = 60  # until a test that hangs fails
CONTENT_LENGTH = (b"content-length", b"900000")


# ---- host and origin check ----


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LocalHost:8765", "[::1]:8765"]
)
def test_loopback_host_names_are_allowed(client, host):
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
def test_other_host_is_403(client, host):
    message = error_message(client.get("/api/runs", headers={"host": host}), 403)
    assert message == f"Host header {host!r} is not allowed; open http://127.0.0.1:8765/."


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8765", "HTTP://127.0.0.1:8765"])
def test_same_origin_request_is_allowed(client, origin):
    body = {"run": "tiny", "text": "the cat"}
    response = client.post("/api/translate", json=body, headers={"origin": origin})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:80"]
)
def test_cross_origin_request_is_403(client, origin):
    body = {"run": "tiny", "text": "the cat"}
    response = client.post("/api/translate", json=body, headers={"origin": origin})
    assert "cross-origin request" in error_message(response, 403)
    assert "access-control-allow-origin" not in response.headers


def test_configured_host_name_is_allowed():
    assert ServerAddress("attention.example", 80).allows_host("attention.example")
    assert not ServerAddress("attention.example", 80).allows_host("other.example")


@pytest.mark.parametrize(
    ("host", "origin", "is_allowed"),
    [
        ("proxy.example", "https://proxy.example", True),
        ("proxy.example", "HTTP://Proxy.example", True),
        ("proxy.example:8443", "https://proxy.example:8443", True),
        ("proxy.example", "https://proxy.example:8443", False),
        ("proxy.example", "https://evil.example", False),
        ("proxy.example", "ftp://proxy.example", False),
        (f"localhost:{PORT}", f"http://localhost:{PORT}", True),
        (f"localhost:{PORT}", f"https://localhost:{PORT}", False),
    ],
)
def test_page_may_be_loaded_by_https_under_the_name_of_a_proxy_only(host, origin, is_allowed):
    address = ServerAddress("127.0.0.1", PORT, allowed_hosts=("proxy.example",))
    assert address.allows_origin(origin, host) is is_allowed


def test_wildcard_host_allows_ip_addresses_and_the_host_name_only():
    address = ServerAddress("0.0.0.0", PORT)
    assert address.allows_host(f"192.168.7.9:{PORT}")
    assert address.allows_host(f"[fe80::1]:{PORT}")
    assert address.allows_host(f"{socket.gethostname()}:{PORT}")
    assert not address.allows_host(f"evil.example:{PORT}")


@pytest.mark.parametrize(
    ("host", "is_loopback", "url"),
    [
        ("127.0.0.1", True, "http://127.0.0.1:8765/"),
        ("localhost", True, "http://localhost:8765/"),
        ("::1", True, "http://[::1]:8765/"),
        ("192.168.7.9", False, "http://192.168.7.9:8765/"),
        ("0.0.0.0", False, f"http://{socket.gethostname()}:8765/"),
    ],
)
def test_server_address_url_and_loopback(host, is_loopback, url):
    address = ServerAddress(host, PORT)
    assert (address.is_loopback, address.url) == (is_loopback, url)


# ---- security headers ----


def test_every_response_has_the_security_headers(client):
    for path in ("/api/runs", "/nothing", SCRIPT_PATH, "/docs", "/openapi.json"):
        headers = client.get(path).headers
        assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert "server" not in headers
    rejected = client.get("/", headers={"host": "evil.example"})
    assert rejected.headers.items() >= {k.lower(): v for k, v in SECURITY_HEADERS.items()}.items()


def test_content_security_policy_allows_own_scripts_only():
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy and policy.startswith("default-src 'none'; script-src 'self';")


def test_api_responses_are_not_cached_and_files_are_revalidated(client):
    assert client.get("/api/runs").headers["cache-control"] == "no-store"
    assert client.get(SCRIPT_PATH).headers["cache-control"] == "no-cache"


def test_static_file_is_revalidated_by_its_etag(client):
    first = client.get(SCRIPT_PATH)
    for etag in (
        first.headers["etag"],
        f"W/{first.headers['etag']}",
        f'"x", {first.headers["etag"]}',
    ):
        again = client.get(SCRIPT_PATH, headers={"if-none-match": etag})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == "no-cache"
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
    changed = client.get(SCRIPT_PATH, headers={"if-none-match": '"another"'})
    assert (changed.status_code, changed.content) == (200, first.content)


def test_static_file_cannot_be_posted_to(client):
    response = client.post(SCRIPT_PATH)
    assert error_message(response, 405) == "method not allowed for this path."
    assert response.headers["allow"] == "GET, HEAD"


# ---- concurrency, body limit and timeout ----


@pytest.mark.parametrize("has_length", [True, False])
def test_body_over_the_limit_is_413(client, has_length):
    body = b" " * (LIMITS.max_body_bytes + 1)
    content = body if has_length else iter([body[:1000], body[1000:]])
    response = client.post("/api/translate", content=content)
    assert ("content-length" in response.request.headers) == has_length
    assert f"at most {LIMITS.max_body_bytes} bytes" in error_message(response, 413)
    assert response.headers["connection"] == "close"


async def post(app, receive, *headers, path="/api/translate", method="POST"):
    """Call an ASGI app and return the status and headers of its response, or None."""
    messages = []

    async def send(message):
        messages.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8765"), *headers],
    }
    with anyio.fail_after(WAIT_SECONDS):
        await app(scope, receive, send)
    for message in messages:
        if message["type"] == "http.response.start":
            return message["status"], dict(message["headers"])
    return None


async def unreachable(*_):
    raise AssertionError("the request should have been rejected before")


async def receive_empty_body():
    return {"type": "http.request", "body": b"", "more_body": False}


async def receive_nothing():
    await anyio.sleep_forever()


@pytest.mark.anyio
async def test_body_that_arrives_too_slowly_is_408():
    async def receive():
        await anyio.sleep(0.001)
        return {"type": "http.request", "body": b" ", "more_body": True}

    app = secure_app(unreachable, ADDRESS, body_timeout_seconds=0.05)
    status, _ = await post(app, receive)
    assert status == 408


@pytest.mark.anyio
async def test_client_that_disconnects_while_sending_gets_no_response():
    messages = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    assert await post(secure_app(unreachable, ADDRESS), receive) is None


@pytest.mark.anyio
async def test_repeated_host_header_is_403():
    status, _ = await post(
        secure_app(unreachable, ADDRESS), unreachable, (b"host", b"127.0.0.1:8765")
    )
    assert status == 403


@pytest.mark.anyio
@pytest.mark.parametrize("has_length", [True, False])
async def test_too_large_body_is_read_to_its_end_before_413(has_length):
    chunks = [b"x" * 100_000] * 9

    async def receive():
        return {"type": "http.request", "body": chunks.pop(), "more_body": bool(chunks)}

    headers = [CONTENT_LENGTH] if has_length else []
    status, _ = await post(secure_app(unreachable, ADDRESS), receive, *headers)
    assert (status, chunks) == (413, [])


@pytest.mark.anyio
async def test_discarding_a_too_large_body_is_bounded():
    received = []

    async def receive():
        received.append(100)
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    app = BodyLimitMiddleware(unreachable, max_discarded_bytes=1000)
    status, _ = await post(app, receive, CONTENT_LENGTH)
    assert (status, sum(received)) == (413, 1000)


@pytest.mark.anyio
async def test_discarding_a_too_large_body_times_out():
    app = BodyLimitMiddleware(unreachable, timeout_seconds=0.05)
    status, _ = await post(app, receive_nothing, CONTENT_LENGTH)
    assert status == 413


@pytest.mark.anyio
async def test_expect_100_continue_with_too_large_body_is_413_at_once():
    headers = [CONTENT_LENGTH, (b"expect", b"100-continue")]
    status, _ = await post(secure_app(unreachable, ADDRESS), unreachable, *headers)
    assert status == 413


@pytest.mark.anyio
async def test_too_many_buffered_bytes_are_503_with_retry_after():
    app = BodyLimitMiddleware(unreachable, max_buffered_bytes=250_000)
    chunk = {"type": "http.request", "body": b"x" * 200_000, "more_body": True}
    slow_messages = [chunk]

    async def receive_slowly():
        return slow_messages.pop() if slow_messages else await receive_nothing()

    async def receive_chunk():
        return chunk

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post, app, receive_slowly)
        await anyio.wait_all_tasks_blocked()
        status, headers = await post(app, receive_chunk)
        tasks.cancel_scope.cancel()
    assert (status, headers[b"retry-after"]) == (503, b"5")


@pytest.mark.anyio
async def test_too_many_concurrent_requests_are_503_with_retry_after():
    async def wait_forever(*_):
        await anyio.sleep_forever()

    app = ConcurrencyLimitMiddleware(wait_forever, max_requests=2)
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(post, app, receive_nothing)
        await anyio.wait_all_tasks_blocked()
        status, headers = await post(app, receive_nothing)
        tasks.cancel_scope.cancel()
    assert (status, headers[b"retry-after"]) == (503, b"1")


@pytest.mark.anyio
async def test_page_opens_while_every_request_and_thread_is_taken():
    async def wait_forever(*_):
        await anyio.sleep_forever()

    app = secure_app(wait_forever, ADDRESS, max_requests=1)
    anyio.to_thread.current_default_thread_limiter().total_tokens = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post, app, receive_empty_body)
        await anyio.wait_all_tasks_blocked()
        assert (await post(app, receive_empty_body))[0] == 503
        for path in ("/", SCRIPT_PATH):
            status, headers = await post(app, receive_nothing, path=path, method="GET")
            assert (status, headers[b"x-content-type-options"]) == (200, b"nosniff")
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("status", [429, 503])
def test_error_that_asks_to_try_again_has_retry_after(status):
    assert error_response(status, "busy").headers["retry-after"] == "1"
    assert error_response(status, "busy", {"Retry-After": "7"}).headers["retry-after"] == "7"
    assert "retry-after" not in error_response(422, "invalid").headers


def test_client_that_sends_everything_before_reading_receives_413(explorer_url):
    host = explorer_url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", "/api/traces/open", body=b"x" * (LIMITS.max_trace_bytes + (1 << 20)))
    assert connection.getresponse().status == 413
    connection.close()
