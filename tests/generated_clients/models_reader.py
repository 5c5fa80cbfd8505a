"""Reads into the models that datamodel-code-generator wrote; prints what came as JSON.

Usage: python models_reader.py ORIGIN TOKEN SINCE, where `models` can be imported.
"""
# pyright: basic, reportMissingImports=false

import json
import sys
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from models import Error, RecordList, SingleRecord, StreamList


def main(origin: str, token: str, since: str) -> None:
    """One call of each kind."""

    def get(path: str) -> bytes:
        asked = Request(origin + path, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
        with urlopen(asked) as answer:  # noqa: S310 (our own)
            return answer.read()

    def refused(path: str) -> tuple[int, Error]:
        try:
            get(path)
        except HTTPError as error:
            return error.code, Error.model_validate_json(error.read())
        raise AssertionError(path)

    streams = StreamList.model_validate_json(get("/v1/streams"))
    later = urlencode({"filter[sent_at][gte]": since})
    page = RecordList.model_validate_json(get(f"/v1/streams/messages/records?{later}"))
    record = SingleRecord.model_validate_json(
        get(f"/v1/streams/messages/records/{page.data[-1].id}")
    )
    status, body = refused("/v1/streams/nothing/records")
    told = {
        "streams": [stream.name for stream in streams.data],
        "ids": [each.id for each in page.data],
        "record": {"id": record.id, "subject": record.model_dump()["data"]["subject"]},
        "refusal": {"status": status, "code": getattr(body.error.code, "value", body.error.code)},
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
