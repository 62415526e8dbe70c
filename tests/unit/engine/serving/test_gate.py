"""The gate: who gets in, from a real connection, and what is too much."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import httpx2
import pytest

from specedit.engine.server import ServedModel, create_app
from specedit.engine.serving import gate
from tests.unit.engine.scripted_answers import ScriptedAnswers
from tests.unit.engine.serving.loopback import HEADERS, TOKEN, serving

MODEL = ServedModel(name="tiny", context_tokens=2048, created=1_700_000_000)
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def port():
    app = create_app(
        ScriptedAnswers(), model=MODEL, token=TOKEN, allowed_hosts=("gpu-box", "[2001:db8::1]"), body_seconds=0.3
    )
    with serving(app) as port:
        yield port


@pytest.fixture(scope="module")
def http(port):
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS) as http:
        yield http


def exchange(port, *lines, body=b"", timeout=5.0):
    """Send a request as it is; gives all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def status(received):
    return int(received.split(b" ", 2)[1])


def get(port, *headers, path="/v1/models"):
    return status(exchange(port, f"GET {path} HTTP/1.1", *headers, "Connection: close"))


AUTHORIZED = f"Authorization: Bearer {TOKEN}"


# Hosts: a page that has its own name rebound to 127.0.0.1 sends that name


NAMES = """
localhost LocalHost:8000 127.0.0.1 127.0.0.1:1 127.0.0.2 [::1] [::1]:8000 gpu-box GPU-box:1 [2001:db8::1]:80
"""


@pytest.mark.parametrize("host", NAMES.split())
def test_names_of_this_server(port, host):
    assert get(port, f"Host: {host}", AUTHORIZED) == 200


OTHER_NAMES = """
evil.example localhost.evil.example evil.example:8000 127.0.0.1.evil.example gpu-box.evil.example localhost. 0.0.0.0
192.168.1.7 127.1 2130706433 0x7f000001 [::] [::1 ::1 [gpu-box] localhost: localhost:8000:1 localhost:123456
user@localhost evil.example/localhost localhost,evil.example localhost\xb2
"""


@pytest.mark.parametrize("host", [*OTHER_NAMES.split(), "", "localhost, evil.example"])
@pytest.mark.parametrize("path", ["/v1/models", "/health"])
def test_other_names_are_refused(port, host, path):
    assert get(port, f"Host: {host}", AUTHORIZED, path=path) == 421


def test_a_missing_host_is_refused(port):
    assert status(exchange(port, "GET /health HTTP/1.0", AUTHORIZED)) == 421


def test_a_doubled_host_is_refused(port):
    assert get(port, "Host: localhost", "Host: evil.example", AUTHORIZED) in (400, 421)


# Web pages


@pytest.mark.parametrize(
    "header",
    [
        "Origin: http://evil.example",
        "Origin: http://localhost:8000",
        "Origin: null",
        "ORIGIN: x",
        "Origin:",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: other",
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/health"])
def test_web_pages_are_refused(port, header, path):
    received = exchange(port, f"GET {path} HTTP/1.1", "Host: localhost", AUTHORIZED, header, "Connection: close")
    assert status(received) == 403
    assert b"access-control" not in received.lower()


def test_a_preflight_gets_no_permission(port):
    asked = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"]
    received = exchange(
        port, "OPTIONS /v1/chat/completions HTTP/1.1", "Host: localhost", "Origin: http://evil.example", *asked
    )
    assert status(received) == 403
    assert b"access-control" not in received.lower()


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_what_the_user_opens_in_a_browser_is_no_web_page(port, site):
    assert get(port, "Host: localhost", AUTHORIZED, f"Sec-Fetch-Site: {site}") == 200


def test_web_sockets_are_refused(port):
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA"]
    received = exchange(port, "GET /v1/models HTTP/1.1", "Host: localhost", *upgrade, timeout=10)
    assert status(received) in (401, 403)


# The token


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Authorization:",),
        ("Authorization: Bearer",),
        ("Authorization: Bearer wrong",),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Bearer {TOKEN[:-1]}",),
        (f"Authorization: Bearer {TOKEN} {TOKEN}",),
        (f"Authorization: Basic {TOKEN}",),
        (f"Authorization: {TOKEN}",),
        ("Authorization: Bearer t\xf6ken",),
        (AUTHORIZED, AUTHORIZED),
        (AUTHORIZED, "Authorization: Bearer wrong"),
        (f"X-API-Key: {TOKEN}",),
        (f"Cookie: Authorization=Bearer {TOKEN}",),
    ],
)
def test_without_the_token_nothing_is_told(port, headers):
    received = exchange(port, "GET /v1/models HTTP/1.1", "Host: localhost", *headers, "Connection: close")
    assert status(received) == 401
    assert b"www-authenticate: bearer" in received.lower()
    assert b"tiny" not in received
    assert TOKEN.encode() not in received


def test_the_scheme_is_written_in_any_case(port):
    assert get(port, "Host: localhost", f"authorization: bEARER {TOKEN}") == 200


CLOSED_PATHS = f"""
/v1/chat/completions /v1/completions /v1/models /v1/models/tiny /metrics /openapi.json / /health/ //health /HEALTH
/health/../v1/models /v1/../health /health%2f..%2fv1/models /health/%2e%2e/metrics /health;x /v1/models?token={TOKEN}
/v1/models%00 http://localhost/health *
"""


@pytest.mark.parametrize("path", CLOSED_PATHS.split())
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS"])
def test_only_health_is_open(port, path, method):
    received = exchange(port, f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close")
    assert status(received) == 401


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/x/../models", 404),
        ("/v1/../v1/models", 404),
        ("//v1/models", 404),
        ("/v1//models", 404),
        ("/v1/%2e%2e/v1/models", 404),
        ("/v1/models/../../etc/passwd", 404),
        ("/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/v1/models/tiny%00", 404),
        ("/v1/models/%ff", 404),
        ("/v1/models/", 404),
        ("http://evil.example/v1/models", 404),
        ("/v1/%6dodels", 200),
        ("/v1/models?x=../..", 200),
    ],
)
def test_paths_are_taken_as_they_are(port, path, code):
    assert get(port, "Host: localhost", AUTHORIZED, path=path) == code


def test_health_may_be_asked_for_with_a_query(port):
    assert get(port, "Host: localhost", path="/health?x=1") == 200


# How much


def pieces(megabytes):
    for _ in range(megabytes):
        yield b" " * MEGABYTE


def still_works(http):
    return http.post("/v1/chat/completions", json=CHAT).status_code == 200


@pytest.mark.parametrize("headers", [{"Content-Length": str(100 * MEGABYTE)}, {}], ids=["declared", "chunked"])
def test_100_megabytes_are_refused(http, headers):
    headers = {**headers, "Content-Type": "application/json"}
    response = http.post("/v1/chat/completions", content=pieces(100), headers=headers)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"
    assert still_works(http)


def test_a_large_body_is_refused_before_it_is_sent(port):
    received = exchange(
        port,
        "POST /v1/completions HTTP/1.1",
        "Host: localhost",
        AUTHORIZED,
        "Content-Length: 99999999999",
        "Expect: 100-continue",
    )
    assert status(received) == 413


def test_others_are_served_while_a_large_body_is_sent(http, port):
    with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{AUTHORIZED}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())

        def send():
            with contextlib.suppress(OSError):
                while True:
                    connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")

        sender = threading.Thread(target=send)
        sender.start()
        assert all(still_works(http) for _ in range(5))
        sender.join(timeout=gate._LINGER_SECONDS + 5)
        assert not sender.is_alive(), "the server reads on for ever"


def test_those_without_the_token_hear_of_it_whatever_they_send(port):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer wrong"}
    response = httpx2.post(f"http://127.0.0.1:{port}/v1/completions", content=b" " * 9 * MEGABYTE, headers=headers)
    assert response.status_code == 401


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_a_body_that_does_not_arrive_is_not_waited_for(port, length):
    received = exchange(port, "POST /v1/completions HTTP/1.1", "Host: localhost", AUTHORIZED, length, body=b"")
    assert status(received) == 408
    assert b"connection: close" in received.lower()


def test_a_body_that_comes_by_drips_is_not_waited_for(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{AUTHORIZED}\r\nContent-Length: 100\r\n\r\n"
        connection.sendall(head.encode())
        for _ in range(20):
            connection.sendall(b" ")
            time.sleep(0.05)
        assert status(connection.recv(65536)) == 408


def test_a_client_that_leaves_in_the_middle_of_its_body_hurts_nobody(http, port, caplog):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{AUTHORIZED}\r\nContent-Length: 100\r\n\r\n"
        connection.sendall(head.encode() + b"{")
    time.sleep(0.1)
    assert still_works(http)
    assert "ERROR" not in caplog.text


def test_a_body_without_end_for_a_path_that_needs_none(port):
    received = exchange(port, "GET /health HTTP/1.1", "Host: localhost", "Content-Length: 99999999999")
    assert status(received) == 413
