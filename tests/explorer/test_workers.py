import threading

import anyio
import httpx2
import pytest
import torch
from starlette.exceptions import HTTPException

from regard.explorer import RequestPool, RunRegistry, TraceRegistry, create_app, inference
from regard.explorer.workers import Cancelled

WAIT_SECONDS = 120  # until a test that hangs fails

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def time_limit():
    with anyio.fail_after(WAIT_SECONDS):
        yield


@pytest.fixture
def pool():
    return RequestPool(workers=2)


async def stay_connected():
    await anyio.sleep_forever()


async def disconnect():
    return {"type": "http.disconnect"}


async def wait_until(condition):
    with anyio.fail_after(WAIT_SECONDS):
        while not condition():
            await anyio.sleep(0.001)


async def collect(results, function, *arguments):
    """Append the result or the HTTPException of an async function to a list."""
    try:
        results.append(await function(*arguments))
    except HTTPException as error:
        results.append(error)


def run_until_cancelled(token):
    while True:
        token.raise_if_cancelled()


async def test_work_runs_in_a_thread_with_one_torch_thread(pool):
    def work(_):
        return threading.current_thread(), torch.get_num_threads()

    thread, num_threads = await pool.run(work, stay_connected)
    assert thread is not threading.main_thread() and num_threads == 1


async def test_exception_of_the_work_is_raised(pool):
    def fail(_):
        raise ZeroDivisionError("in the work")

    with pytest.raises(ZeroDivisionError, match="in the work"):
        await pool.run(fail, stay_connected)


async def test_http_exception_of_the_work_is_raised_unchanged(pool):
    def fail(_):
        raise HTTPException(422, "invalid")

    with pytest.raises(HTTPException, match="invalid") as error:
        await pool.run(fail, stay_connected)
    assert error.value.status_code == 422


async def test_full_queue_is_503_with_retry_after_until_it_drains():
    pool, proceed, results = RequestPool(workers=1, queue_size=1), threading.Event(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            collect, results, pool.run, lambda _: proceed.wait(WAIT_SECONDS), stay_connected
        )
        tasks.start_soon(collect, results, pool.run, lambda _: "second", stay_connected)
        await wait_until(lambda: pool.num_requests == 2)
        with pytest.raises(HTTPException, match="busy") as error:
            await pool.run(lambda _: "third", stay_connected)
        proceed.set()
    assert (error.value.status_code, error.value.headers) == (503, {"Retry-After": "1"})
    assert results == [True, "second"]
    assert await pool.run(lambda _: "third", stay_connected) == "third"


async def test_pool_without_queue_accepts_as_many_requests_as_workers():
    pool, proceed, results = RequestPool(workers=2, queue_size=0), threading.Event(), []
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(
                collect, results, pool.run, lambda _: proceed.wait(WAIT_SECONDS), stay_connected
            )
        await wait_until(lambda: pool.num_requests == 2)
        await collect(results, pool.run, lambda _: "third", stay_connected)
        proceed.set()
    assert [result for result in results if result is True] == [True, True]
    assert [result.status_code for result in results if result is not True] == [503]


async def test_no_more_work_runs_at_once_than_there_are_workers():
    pool, lock, running, peak = RequestPool(workers=2), threading.Lock(), [], []

    def work(_):
        with lock:
            running.append(1)
            peak.append(len(running))
        threading.Event().wait(0.02)
        with lock:
            running.pop()

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(pool.run, work, stay_connected)
    assert max(peak) == 2 and len(peak) == 8


async def test_queued_work_of_a_disconnected_client_never_runs():
    pool, proceed, results, begun = RequestPool(1, queue_size=1), threading.Event(), [], []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            collect, results, pool.run, lambda _: proceed.wait(WAIT_SECONDS), stay_connected
        )
        await wait_until(lambda: pool.num_requests == 1)
        with pytest.raises(HTTPException, match="disconnected"):
            await pool.run(lambda _: begun.append("second"), disconnect)
        assert pool.num_requests == 1  # its place in the queue is free
        proceed.set()
    assert (results, begun) == ([True], [])


async def test_work_of_a_disconnected_client_is_cancelled(pool):
    begun, cancelled, disconnected = threading.Event(), [], anyio.Event()

    def work(token):
        begun.set()
        try:
            run_until_cancelled(token)
        except Cancelled:
            cancelled.append(True)
            raise

    async def receive():
        await disconnected.wait()
        return await disconnect()

    results = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, results, pool.run, work, receive)
        await wait_until(begun.is_set)
        disconnected.set()
    assert results[0].status_code == 499
    await wait_until(lambda: pool.num_requests == 0)
    assert cancelled == [True]


async def test_missed_deadline_is_503_and_cancels_the_work():
    pool = RequestPool(workers=1, timeout_seconds=0.05)
    with pytest.raises(HTTPException, match="longer than 0.05 seconds") as error:
        await pool.run(run_until_cancelled, stay_connected)
    assert (error.value.status_code, error.value.headers) == (503, {"Retry-After": "5"})
    await wait_until(lambda: pool.num_requests == 0)


async def test_deadline_includes_the_time_in_the_queue():
    pool, proceed, results = RequestPool(1, timeout_seconds=0.05), threading.Event(), []
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(
                collect, results, pool.run, lambda _: proceed.wait(WAIT_SECONDS), stay_connected
            )
    assert [error.status_code for error in results] == [503, 503]
    proceed.set()
    await wait_until(lambda: pool.num_requests == 0)


async def test_abandoned_work_keeps_its_worker_until_it_ends():
    pool, proceed = RequestPool(1, queue_size=0, timeout_seconds=0.05), threading.Event()
    with pytest.raises(HTTPException, match="longer than"):
        await pool.run(lambda _: proceed.wait(WAIT_SECONDS), stay_connected)
    with pytest.raises(HTTPException, match="busy"):
        await pool.run(lambda _: None, stay_connected)
    proceed.set()
    await wait_until(lambda: pool.num_requests == 0)
    assert await pool.run(lambda _: "done", stay_connected) == "done"


@pytest.fixture
def make_http_client(tiny_run):
    def make(pool):
        app = create_app(RunRegistry([tiny_run]), TraceRegistry([]), pool)
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost")

    return make


async def test_full_queue_answers_503_and_other_routes_still_respond(make_http_client, monkeypatch):
    proceed, responses = threading.Event(), []
    monkeypatch.setattr(inference, "translate_text", lambda *_: proceed.wait(WAIT_SECONDS) and [])
    body = {"run": "tiny", "text": "the cat"}

    async def translate(client):
        responses.append(await client.post("/api/translate", json=body))

    async with (
        make_http_client(RequestPool(workers=1, queue_size=1)) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(5):
            tasks.start_soon(translate, client)
        await wait_until(lambda: len(responses) == 3)
        assert (await client.get("/api/runs")).status_code == 200  # needs no worker
        proceed.set()
    assert sorted(response.status_code for response in responses) == [200, 200, 503, 503, 503]
    for response in responses:
        is_rejected = response.status_code == 503
        assert ("retry-after" in response.headers) == is_rejected
        assert ("busy" in response.text) == is_rejected


async def test_trace_is_not_computed_when_the_client_leaves_while_the_model_loads(
    tiny_run, pool, monkeypatch
):
    registry, left, traced = RunRegistry([tiny_run]), anyio.Event(), []
    is_loading, proceed, load = threading.Event(), threading.Event(), registry.load

    def slow_load(*arguments):
        is_loading.set()
        proceed.wait(WAIT_SECONDS)
        return load(*arguments)

    monkeypatch.setattr(registry, "load", slow_load)
    monkeypatch.setattr(inference, "trace_text", lambda *_: traced.append(True))
    body = b'{"run": "tiny", "source": "the cat", "target": "le chat"}'
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await left.wait()
        return await disconnect()

    async def send(message):
        pass

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/traces",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create_app(registry, TraceRegistry([]), pool), scope, receive, send)
        await wait_until(is_loading.is_set)
        left.set()
    proceed.set()
    await wait_until(lambda: pool.num_requests == 0)
    assert traced == []


async def test_concurrent_clients_get_their_own_results(make_http_client, pool):
    texts = ["the cat", "the old dog sees the boat", "red", "a man hears the bird", "the big cat"]
    concurrent, sequential = {}, {}

    async def request(client, text, results):
        translate = await client.post("/api/translate", json={"run": "tiny", "text": text})
        body = {"run": "tiny", "source": text, "target": text}
        trace = await client.post("/api/traces", json=body)
        results[text] = translate.json(), trace.json()

    async with make_http_client(pool) as client:
        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(request, client, text, concurrent)
        for text in texts:
            await request(client, text, sequential)
    assert concurrent == sequential and len(concurrent) == len(texts)
