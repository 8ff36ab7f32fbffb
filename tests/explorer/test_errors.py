from regard.explorer.errors import Refused


def test_a_refusal_holds_a_status_a_sentence_and_when_to_come_again():
    plain, later = Refused(404, "it is not there"), Refused(503, "it is busy", retry_after=3)
    assert (plain.status, str(plain), plain.headers) == (404, "it is not there", {})
    assert later.headers == {"Retry-After": "3"}
