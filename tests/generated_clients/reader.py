"""Reads with the Python client that openapi-python-client wrote; prints what came as JSON.

Usage: python reader.py ORIGIN TOKEN SINCE, where `personal_server_client` can be imported.
"""
# pyright: basic, reportMissingImports=false

import json
import sys

from personal_server_client import AuthenticatedClient
from personal_server_client.api.records import list_records, read_record
from personal_server_client.api.schema import list_streams
from personal_server_client.models import ListRecordsFilter, RecordList, SingleRecord, StreamList


def main(origin: str, token: str, since: str) -> None:
    """One call of each kind."""
    client = AuthenticatedClient(base_url=origin, token=token)
    streams = list_streams.sync(client=client)
    assert isinstance(streams, StreamList)
    later = ListRecordsFilter.from_dict({"filter[sent_at][gte]": since})
    page = list_records.sync("messages", client=client, filter_=later, limit=100)
    assert isinstance(page, RecordList)
    record = read_record.sync("messages", page.data[-1].id, client=client)
    assert isinstance(record, SingleRecord)
    refused = list_records.sync_detailed("nothing", client=client)
    body = refused.parsed.to_dict()
    told = {
        "streams": [stream.name for stream in streams.data],
        "ids": [each.id for each in page.data],
        "record": {"id": record.id, "subject": record.data.additional_properties["subject"]},
        "refusal": {"status": refused.status_code, "code": body["error"]["code"]},
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
