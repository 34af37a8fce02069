"""One behaviour on every broker: these laws run unchanged in memory and on each real transport.

What a broker cannot do is data (`Capabilities`), and the law then says what happens instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from tests.brokers.behaviour.place import BROKERS, LEASES, MANY, SHORT, Place
from tests.brokers.urls import with_options

from tallystick.runtime.address import link_to


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, broker_url: Callable[[str], str]) -> Iterator[Place]:
    server, options, crash = BROKERS[request.param]
    base = broker_url(server) if server else f"memory://{uuid4().hex}"
    suffix = ".fifo" if request.param.endswith("fifo") else ""
    queue = f"tally-{uuid4().hex[:12]}{suffix}"
    many = MANY.get(request.param, 10_000)
    short, lease = LEASES.get(request.param, (options, 0.0))
    url, crashing = (with_options(base, one.format(queue)) for one in (options, crash))
    base = broker_url(SHORT[server]) if lease and server in SHORT else base
    leased = with_options(base, short.format(queue))
    with ExitStack() as stack:
        yield Place(link_to(url), url, link_to(crashing), queue, many, leased, lease, stack)
