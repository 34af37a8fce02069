"""The blocks that the tests do not run, each with the reason. Keep this table short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["NOT_RUN"]

_CLUSTER: Final = "needs a cluster or brokers on other machines"
_CLONE: Final = "needs a clone and minutes of work; `make test` runs it"

NOT_RUN: Final[Mapping[tuple[str, str], str]] = {
    ("README.md", "git clone"): "needs the address of the reader's copy",
    ("README.md", "make prove"): "the two commands themselves: these tests are part of `make test`",
    ("docs/guides/events.md", "git clone"): "fetches the official files from another site",
    ("docs/guides/events.md", "export TALLY_OFFICIAL"): "names the files of the block before it",
    ("docs/guides/faults.md", "run redis rabbitmq"): "3 minutes; short ones: tests/suites/faults",
    ("docs/guides/install.md", "git clone"): "needs the address; see tests/wheel",
    ("docs/guides/lab.md", "interop/startall"): _CLUSTER,
    ("docs/guides/lab-perf.md", "interop/startall"): _CLUSTER,
    ("docs/guides/lab-tiers.md", "--broker qpid --journal"): "10 minutes; `make lab` runs it",
    ("docs/guides/lab-tiers.md", "tally lab fields"): "starts two brokers; tests/lab runs it",
    ("docs/guides/pipeline.md", "kafka://broker:9092"): _CLUSTER,
    ("docs/guides/pipeline.md", "http://marquez"): "needs a server; tests/pipeline has one",
    ("docs/guides/pipeline.md", "--to s3://"): "needs a bucket; tests/pipeline has an S3 server",
    ("docs/guides/pipeline.md", "--master spark"): _CLUSTER,
    ("docs/guides/pipeline.md", "--master yarn"): _CLUSTER,
    ("docs/guides/pipeline.md", "--available-now"): "one more Spark; tests/pipeline runs streams",
    ("docs/guides/prove.md", "make prove"): "minutes; tests/suites and tests/cli run its steps",
    (
        "docs/guides/run-the-suite.md",
        "run --implementation",
    ): "needs Go; see tests/subjects",
    ("docs/guides/serve.md", "serve --registry examples"): "does not end; see tests/server",
    ("docs/guides/vendor-the-standard.md", "node tools/vectors"): _CLONE,
    ("docs/guides/write-a-subject.md", "#!/bin/sh"): "a part of a folder that does not exist here",
}
"""(page, text in the block) -> why it cannot be run here."""
