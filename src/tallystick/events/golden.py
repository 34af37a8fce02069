"""The golden events and batches of the conformance document, in code.

Two ids follow the official data files rather than the document's prose, which is not the same:
`simpleTextData` and `allExtensionTypes`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tallystick.events.event import make
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import Uri, UriReference

__all__ = ["BATCHES", "EVENTS"]

_TYPE: Final = "io.cloudevents.test"
_SOURCE: Final = "https://cloudevents.io"
_TIME: Final = Timestamp("2018-04-05T17:31:00Z")

EVENTS: Final = MappingProxyType(
    {
        "minimal": make(id="minimal", type=_TYPE, source=_SOURCE),
        "minimalWithTime": make(id="minimalWithTime", type=_TYPE, source=_SOURCE, time=_TIME),
        "minimalWithRelativeSource": make(
            id="minimalWithRelativeSource", type=_TYPE, source="#fragment"
        ),
        "allCore": make(
            id="allCore",
            type=_TYPE,
            source=_SOURCE,
            datacontenttype="text/plain",
            dataschema="https://cloudevents.io/dataschema",
            subject="tests",
            time=_TIME,
        ),
        "simpleTextData": make(
            id="simpleTextData",
            type=_TYPE,
            source=_SOURCE,
            datacontenttype="text/plain",
            data="Simple text",
        ),
        "allExtensionTypes": make(
            id="allExtensionTypes",
            type=_TYPE,
            source=_SOURCE,
            extensions={
                "extinteger": 10,
                "extboolean": True,
                "extstring": "text",
                "extbinary": bytes((77, 97)),
                "exttimestamp": Timestamp("2023-03-31T15:12:00Z"),
                "exturi": Uri("https://cloudevents.io"),
                "exturiref": UriReference("//authority/path"),
            },
        ),
    }
)
"""The golden events by their sample id."""

BATCHES: Final = MappingProxyType(
    {
        name: tuple(EVENTS[each] for each in members)
        for name, members in (
            ("empty", ()),
            ("minimal", ("minimal",)),
            ("minimal2", ("minimal", "minimal")),
            ("minimalAndAllCore", ("minimal", "allCore")),
            ("minimalAndAllExtensionTypes", ("minimal", "allExtensionTypes")),
        )
    }
)
"""The golden batches by their sample id."""
