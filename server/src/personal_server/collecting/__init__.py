"""Effects of data coming in: declarations, connections, records, receipts."""
