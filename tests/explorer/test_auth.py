import logging
import re

import pytest

from helpers.explorer import SCRIPT_PATH, error_message
from regard.explorer import auth
from regard.explorer.auth import LOGIN_LINK_SECONDS, LoginCodes
from regard.web.middleware import SECURITY_HEADERS

PORT = 8765
TOKEN = "a-token-of-many-letters"
HTML = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def client(make_client, tiny_run):
    """A client that has not logged in."""
    return make_client(tiny_run, token=TOKEN)


@pytest.mark.parametrize("path", ["/", "/api/runs", SCRIPT_PATH, "/openapi.json", "/docs"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN.upper()])
def test_missing_or_wrong_token_is_401(make_client, tiny_run, path, token):
    client = make_client(tiny_run, token=TOKEN)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    message = error_message(client.get(path, headers=headers), 401)
    assert message.startswith("a token is required")
    if token is not None:
        client.cookies.set(f"regard-{PORT}", token)
        assert client.get(path, params={"token": token}).status_code == 401


def test_bearer_token_authenticates(make_client, tiny_run):
    client = make_client(tiny_run, token=TOKEN)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/runs", headers=bearer).status_code == 200


def test_login_link_sets_cookie_and_redirects_without_the_token(make_client, tiny_run):
    client = make_client(tiny_run, token=TOKEN)
    assert client.get("/api/runs", params={"token": TOKEN}).status_code == 401
    login = client.get("/", params={"token": TOKEN, "run": "tiny"})
    assert (login.status_code, login.headers["location"]) == (303, "/?run=tiny")
    cookie = login.headers["set-cookie"]
    assert cookie.startswith(f"regard-{PORT}=")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert client.get("/api/runs").status_code == 200


def test_malformed_authorization_header_is_401(make_client, tiny_run):
    client = make_client(tiny_run, token=TOKEN)
    for value in (b"Bearer \xff\xfe", b"Bearer", b"Basic " + TOKEN.encode(), b"bearer  " * 99):
        error_message(client.get("/api/runs", headers={b"authorization": value}), 401)


def test_cookie_contains_no_token(client):
    login = client.get("/", params={"token": TOKEN})
    assert TOKEN not in login.headers["set-cookie"]
    client.cookies.clear()
    client.cookies.set(f"regard-{PORT}", TOKEN)
    assert client.get("/api/runs").status_code == 401


def test_cookie_of_another_server_is_401(client, make_client, tiny_run):
    login = make_client(tiny_run, token=TOKEN).get("/", params={"token": TOKEN})
    client.cookies.set(f"regard-{PORT}", login.cookies[f"regard-{PORT}"])
    assert client.get("/api/runs").status_code == 401


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_login_link_is_for_get_only(client, method):
    assert client.request(method, "/", params={"token": TOKEN}).status_code == 401


# ---- one-time links ----


def test_one_time_link_logs_in_once(make_client, tiny_run):
    codes = LoginCodes()
    code = codes.create()
    client = make_client(tiny_run, token=TOKEN, login_codes=codes)
    assert client.head("/", params={"login": code}).status_code == 401  # does not use it up
    assert client.get("/api/runs", params={"login": code}).status_code == 401
    login = client.get("/", params={"login": code, "run": "tiny"})
    assert (login.status_code, login.headers["location"]) == (303, "/?run=tiny")
    assert "HttpOnly" in login.headers["set-cookie"]
    assert "SameSite=strict" in login.headers["set-cookie"]
    assert client.get("/api/runs").status_code == 200
    client.cookies.clear()
    again = client.get("/", params={"login": code}, headers=HTML)
    assert again.status_code == 401 and "set-cookie" not in again.headers
    assert 'data-problem="used-link"' in again.text


def test_one_time_link_expires():
    now = 100.0
    codes = LoginCodes(clock=lambda: now)
    early, late = codes.create(), codes.create()
    now += LOGIN_LINK_SECONDS - 1
    assert codes.redeem(early)
    now += 1
    assert not codes.redeem(late)


def test_unknown_codes_are_not_redeemed():
    codes = LoginCodes()
    code = codes.create()
    for wrong in ("", code[:-1], code + "x", "é"):
        assert not codes.redeem(wrong)
    assert codes.redeem(code)


# ---- login page ----


@pytest.mark.parametrize("path", ["/", "/docs", "/nothing"])
def test_browser_without_cookie_sees_the_login_page_with_401(client, path):
    response = client.get(path, headers=HTML)
    assert (response.status_code, response.headers["cache-control"]) == (401, "no-store")
    assert response.headers["www-authenticate"] == "Bearer"
    assert 'data-problem="none"' in response.text
    assert "In the terminal where" in response.text and "的终端里" in response.text
    assert TOKEN not in response.text
    error_message(client.get("/api/runs", headers=HTML), 401)


def test_login_form_sets_the_cookie_and_redirects(client):
    origin = {"origin": f"http://127.0.0.1:{PORT}"}
    login = client.post("/login", data={"token": f" {TOKEN}\n"}, headers=origin)
    assert (login.status_code, login.headers["location"]) == (303, "/")
    assert "HttpOnly" in login.headers["set-cookie"]
    assert client.get("/api/runs").status_code == 200


@pytest.mark.parametrize("data", [{"token": "wrong"}, {"token": ""}, {"other": TOKEN}, {}])
def test_login_form_with_a_wrong_token_is_401(client, data):
    response = client.post("/login", data=data)
    assert response.status_code == 401 and "set-cookie" not in response.headers
    assert 'data-problem="wrong-token"' in response.text


def test_login_form_of_another_origin_is_403(client):
    for origin in ("http://evil.example", "null"):
        response = client.post("/login", data={"token": TOKEN}, headers={"origin": origin})
        assert "cross-origin" in error_message(response, 403)
        assert "set-cookie" not in response.headers


def test_login_form_that_is_too_large_is_413(client):
    response = client.post("/login", data={"token": "x" * auth.MAX_LOGIN_BYTES})
    assert "at most 4096 bytes" in error_message(response, 413)


def test_login_page_allows_no_script_and_only_its_own_form(client):
    headers = client.get("/", headers=HTML).headers
    policy = headers["content-security-policy"]
    assert "script-src" not in policy and "unsafe" not in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "form-action 'self'" in policy and "frame-ancestors 'none'" in policy
    for name in set(SECURITY_HEADERS) - {"Content-Security-Policy", "Referrer-Policy"}:
        assert headers[name] == SECURITY_HEADERS[name]


def test_secrets_are_compared_in_constant_time(client, monkeypatch):
    compared = []

    def compare_digest(given, secret):
        compared.append(secret)
        return given == secret

    monkeypatch.setattr(auth.secrets, "compare_digest", compare_digest)
    client.get("/api/runs", headers={"authorization": "Bearer wrong"})
    assert TOKEN.encode() in compared and len(compared) == 2  # the token and the cookie
    compared.clear()
    client.post("/login", data={"token": "wrong"})
    assert compared == [TOKEN.encode()]


def test_token_is_never_logged(client, caplog):
    with caplog.at_level(logging.DEBUG):
        client.get("/", params={"token": TOKEN})
        client.post("/login", data={"token": TOKEN})
        client.get("/nothing", params={"token": TOKEN})
    # httpx2, the test's own client, logs the URLs that it requests
    logged = [record for record in caplog.records if not record.name.startswith("http")]
    assert not [record for record in logged if TOKEN in record.getMessage()]


@pytest.mark.browser
@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_token_pasted_into_the_login_page_opens_the_explorer(
    serve_explorer, open_page, run_without_phrasebook, color_scheme
):
    with serve_explorer([run_without_phrasebook], token=TOKEN) as url:
        page = open_page(url, color_scheme=color_scheme, viewport={"width": 390, "height": 844})
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, re.findall(r"\d+", background))) < 64) == (color_scheme == "dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button").click()
        page.get_by_text("That is not the token of this server").wait_for()
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button").click()
        page.locator("nav.tabs").wait_for()
        assert page.url.split("#")[0] == url
        assert page.evaluate("document.cookie") == ""  # HttpOnly
