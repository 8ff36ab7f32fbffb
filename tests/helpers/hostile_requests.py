"""Random requests to the explorer: good, malformed, oversized, with wrong hosts and tokens."""

import json
from random import Random

from attacks.table import TRACE_BYTES, TRACES

PATHS = (
    *("/", "/login", "/openapi.json", "/docs", "/explorer.css", "/favicon.ico", "/x" * 2000),
    *("/static/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/runs/..%2f..", "/api/%00"),
    *(
        "/api/runs",
        "/api/runs/demo-model/log",
        "/api/runs/demo-model/checkpoints",
        "/api/runs/x/log",
    ),
    *(
        "/api/translate",
        "/api/trace",
        "/api/compare",
        "/api/score",
        "/api/attend",
        "/api/playground",
    ),
    *("/api/traces", "/api/traces/open", "/api/traces/contents", "/api/traces/%0d%0aX:1"),
)
METHODS = (
    *("GET", "POST") * 5,
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "F",
)
SETTINGS = ("beam_size", "n_best", "target", "layer", "head", "seed", "temperature", "checkpoint")
VALUES = (None, True, 0, -1, 2**70, 10**400, float("nan"), 1e308, "", "a cat", [], {}, "\u202e\0")
UPLOADS = (
    *(content.encode("utf-8", "surrogatepass") for content, _ in TRACES.values()),
    *(content for content, _ in TRACE_BYTES.values()),
)
MAX_UPLOAD_BYTES = 1 << 20


def draw_body(random: Random) -> bytes:
    """Draw a translation with odd settings, the same with changed bytes, noise or a trace."""
    kind = random.randrange(4)
    if kind == 0:
        return random.randbytes(random.choice([0, 1, 1000, 100_000]))
    if kind == 1:
        return random.choice([data for data in UPLOADS if len(data) < MAX_UPLOAD_BYTES])
    settings = {name: random.choice(VALUES) for name in random.sample(SETTINGS, 2)}
    text = random.choice(["a cat", "the old man", "x" * 5000, random.choice(VALUES)])
    body = bytearray(json.dumps({"run": "demo-model", "text": text, **settings}).encode())
    for _ in range(random.choice([0, 0, 3])):
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body)


def draw_headers(random: Random, host: str, token: str) -> list[tuple[str, str]]:
    """Draw Host, Authorization and Origin, mostly right ones, and perhaps an odd header."""
    port = host.rpartition(":")[2]
    names = (
        "evil.example",
        f"localhost:{port}",
        f"{host}.evil.example",
        f"evil@{host}",
        "",
        "\xff",
    )
    headers = [("Host", random.choice([*[host] * 20, *names]))]
    if random.random() < 0.03:
        headers.append(("Host", host))
    tokens = (token, "x", "", "\xff")
    if random.random() < 0.9:
        headers.append(("Authorization", f"Bearer {random.choice([*[token] * 9, *tokens])}"))
    if random.random() < 0.15:
        origins = (f"http://{host}", "http://evil.example", "null", "http://[", "")
        headers.append(("Origin", random.choice(origins)))
    if random.random() < 0.1:
        odd = [("Upgrade", "websocket"), ("Expect", "100-continue"), ("Range", "bytes=5-1")]
        headers.append(random.choice([*odd, ("X", "x" * 70_000), ("Cookie", "a=b;" * 500)]))
    return headers


def draw_request(random: Random, host: str, token: str) -> bytes:
    """Draw the bytes of a request, some of them truncated or noise."""
    method, path = random.choice(METHODS), random.choice(PATHS)
    body = b"" if method in ("GET", "HEAD") and random.random() < 0.9 else draw_body(random)
    headers = draw_headers(random, host, token)
    framing = random.randrange(20)
    if framing == 0:
        headers.append(("Content-Length", random.choice(["9" * 400, "-1", "999"])))
    elif framing == 1:
        headers.append(("Transfer-Encoding", "chunked"))
        body = random.choice([b"zz\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)])
    elif body:
        headers.append(("Content-Length", str(len(body))))
    headers.append(
        ("Content-Type", random.choice(["application/json"] * 5 + ["text/plain", "\xff"]))
    )
    version = random.choice(["1.1"] * 20 + ["1.0", "9.9", "x"])
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers)]
    request = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
    if random.random() < 0.03:
        return random.randbytes(random.randrange(1, 3000))
    return request[: random.randrange(1, len(request))] if random.random() < 0.03 else request
