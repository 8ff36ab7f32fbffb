import asyncio
from threading import Event, current_thread

import httpx2
import pytest
import torch

from regard.explorer import app as app_file
from regard.explorer.app import create_app
from regard.explorer.cancellation import Stopped
from regard.explorer.errors import Refused
from regard.explorer.runs import Shelf
from regard.explorer.traces import Saved
from regard.explorer.workers import Line

WAIT = 120  # seconds until a test that hangs fails


async def stays():
    await asyncio.Event().wait()


async def leaves():
    return {"type": "http.disconnect"}


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, WAIT))


async def until(holds):
    while not holds():
        await asyncio.sleep(0.001)


def test_work_is_done_by_a_worker_that_computes_alone(line):
    async def ask():
        return await line.do(lambda _: (current_thread().name, torch.get_num_threads()), stays)

    name, threads = run(ask())
    assert name.startswith("work") and threads == 1


def test_what_goes_wrong_in_the_work_is_told_to_who_asked(line):
    def fail(stop):
        raise ZeroDivisionError("in the work")

    with pytest.raises(ZeroDivisionError, match="in the work"):
        run(line.do(fail, stays))


def test_who_comes_to_a_full_line_is_sent_away_and_may_come_again():
    line, go_on = Line(workers=1, waiting=1), Event()

    async def ask():
        first = asyncio.ensure_future(line.do(lambda _: go_on.wait(WAIT) and "first", stays))
        second = asyncio.ensure_future(line.do(lambda _: "second", stays))
        await asyncio.sleep(0)  # both are in the line now
        with pytest.raises(Refused, match="busy") as problem:
            await line.do(lambda _: "third", stays)
        go_on.set()
        assert (await first, await second) == ("first", "second")
        return problem.value, await line.do(lambda _: "third", stays)

    refusal, answer = run(ask())
    assert (refusal.status, refusal.headers) == (503, {"Retry-After": "1"})
    assert answer == "third"
    line.close()


def test_work_whose_client_left_before_it_began_is_never_begun():
    line, go_on, begun = Line(workers=1, waiting=1), Event(), []

    async def ask():
        first = asyncio.ensure_future(line.do(lambda _: go_on.wait(WAIT), stays))
        await asyncio.sleep(0)
        with pytest.raises(Refused):
            await line.do(lambda _: begun.append("second"), leaves)
        await line_has_room()
        go_on.set()
        await first

    async def line_has_room():
        await until(lambda: line._inside == 1)  # who left makes room for others

    run(ask())
    line.close()
    assert begun == []


def test_work_whose_client_leaves_stops_at_its_next_step(line):
    begun, ended, left = Event(), [], asyncio.Event()

    def work(stop):
        begun.set()
        try:
            while True:
                stop.check()
        except Stopped:
            ended.append("stopped")
            raise

    async def leaves_soon():
        await left.wait()
        return {"type": "http.disconnect"}

    async def ask():
        asked = asyncio.ensure_future(line.do(work, leaves_soon))
        await until(begun.is_set)
        left.set()
        with pytest.raises(Refused):
            await asked
        await until(lambda: ended)

    run(ask())
    assert ended == ["stopped"]


def test_work_that_takes_too_long_is_stopped_and_told_of():
    line, ended = Line(workers=1, seconds=0.05), []

    def work(stop):
        try:
            while True:
                stop.check()
        finally:
            ended.append("stopped")

    async def ask():
        with pytest.raises(Refused, match="longer than 0.05 seconds") as problem:
            await line.do(work, stays)
        await until(lambda: ended)
        return problem.value

    assert run(ask()).status == 503
    line.close()


def test_a_full_line_is_503_with_retry_after_and_others_are_answered(trained, monkeypatch):
    line, go_on = Line(workers=1, waiting=1), Event()
    transport = httpx2.ASGITransport(create_app(Shelf([trained]), Saved([]), line))
    monkeypatch.setattr(app_file.inference, "translations", lambda *_: go_on.wait(WAIT) and [])
    form = {"run": "small", "text": "the cat"}

    async def ask():
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asked = [
                asyncio.ensure_future(client.post("/api/translate", json=form)) for _ in "abcde"
            ]
            await until(lambda: sum(each.done() for each in asked) == 3)
            assert (await client.get("/api/runs")).status_code == 200  # needs no worker
            go_on.set()
            return await asyncio.gather(*asked)

    answers = run(ask())
    line.close()
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503, 503]
    for answer in answers:
        sent_away = answer.status_code == 503
        assert ("retry-after" in answer.headers, "busy" in answer.text) == (sent_away, sent_away)


def test_clients_at_once_get_their_own_answers(trained, line):
    transport = httpx2.ASGITransport(create_app(Shelf([trained]), Saved([]), line))
    texts = ["the cat", "the old dog sees the boat", "red", "a man hears the bird", "the big cat"]

    async def ask(together):
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def answers(text):
                translated = await client.post(
                    "/api/translate", json={"run": "small", "text": text}
                )
                form = {"run": "small", "source": text, "target": text}
                return translated.json(), (await client.post("/api/traces", json=form)).json()

            if together:
                return await asyncio.gather(*map(answers, texts))
            return [await answers(text) for text in texts]

    assert run(ask(together=True)) == run(ask(together=False))
