"""What load.py writes down and judge.py reads: one record of fixed size for each request."""

import struct

FORMAT = struct.Struct("<QBBHdddd")  # number, kind, outcome, local port, four monotonic times in seconds
OVERDUE = 40.0  # seconds until an answer is given up

FRESH, PERSISTENT, LAZY, PIPELINED, SLOW, LATE = range(6)
KINDS = ("fresh", "persistent", "lazy", "pipelined", "slow bodies", "late answers")

# Of requests; and, with number 0, of connections without one.
(ANSWERED, WRONG, REFUSED, UNCONNECTED, LOST, PARTLY, OVERDUE_ANSWER, DEFERRED,
 CLOSED_IDLE, UNASKED, RESET_END, UNENDED) = range(12)
OUTCOMES = (
    "answered right",
    "answered otherwise",
    "refused",
    "not connected",
    "lost: the connection ended before an answer",
    "lost: in the middle of an answer",
    "lost: no answer in time",
    "cut off by Connection: close, sent again",
    "connection ended while idle",
    "bytes that nobody asked for",
    "reset after Connection: close",
    "not ended after Connection: close",
)
# Not wanted: each must have a reason.
BAD = (WRONG, REFUSED, UNCONNECTED, LOST, PARTLY, OVERDUE_ANSWER, CLOSED_IDLE, UNASKED, RESET_END, UNENDED)
REQUEST = (ANSWERED, WRONG, REFUSED, UNCONNECTED, LOST, PARTLY, OVERDUE_ANSWER)


class Record:
    """opened: the connect began; idle_since: since the last answer, or the connect; sent, ended."""

    __slots__ = ("number", "kind", "outcome", "port", "opened", "idle_since", "sent", "ended")

    def __init__(self, fields):
        (self.number, self.kind, self.outcome, self.port, self.opened, self.idle_since, self.sent,
         self.ended) = fields


def pack(*fields):
    return FORMAT.pack(*fields)


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return [Record(fields) for fields in FORMAT.iter_unpack(data)]
