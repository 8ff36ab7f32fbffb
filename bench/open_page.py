"""Open the explorer's page again and again, each time over a new connection.

    python bench/open_page.py URL TOKEN

Prints the seconds that each took as JSON when its standard input is closed; a page that the server
was too busy for is opened again, and its time includes the pause. `bench/explore.py` runs this in a
process of its own, without other imports, so that its clients do not slow it down.
"""

import http.client
import json
import sys
import time
from select import select
from urllib.parse import urlsplit

INTERVAL_SECONDS = 0.1
TIMEOUT_SECONDS = 60


def open_page(url: str, token: str) -> float | None:
    """Get the page; return the seconds to wait if the server is busy."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/", headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status == 503:
        return float(response.headers.get("Retry-After", 1))
    assert response.status == 200 and b"<title>regard</title>" in body
    return None


def main(url: str, token: str) -> None:
    """Open the page until standard input is closed, and print the latencies."""
    latencies = []
    while not select([sys.stdin], [], [], INTERVAL_SECONDS)[0]:
        start = time.monotonic()
        while (retry_after := open_page(url, token)) is not None:
            time.sleep(retry_after)
        latencies.append(time.monotonic() - start)
    print(json.dumps(latencies))


if __name__ == "__main__":
    main(*sys.argv[1:])
