"""Every environment variable that Tallystick reads or sets: the one table of their names.

docs/reference/environment.md shows this table; a test compares the two, and another one looks for
variables in the source that are not declared here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "BROKER",
    "BROKER_FOLDER",
    "LAKE",
    "LINEAGE_KEY",
    "MODE",
    "OFFICIAL",
    "PYTHON",
    "REDIS_URL",
    "REGISTRY",
    "S3_ENDPOINT",
    "STORE",
    "TRACEBACK",
    "VARIABLES",
    "Variable",
]

REGISTRY: Final = "TALLY_REGISTRY"
MODE: Final = "TALLY_MODE"
BROKER: Final = "TALLY_BROKER"
LAKE: Final = "TALLY_LAKE"
STORE: Final = "TALLY_STORE"
OFFICIAL: Final = "TALLY_OFFICIAL"
REDIS_URL: Final = "TALLY_REDIS_URL"
TRACEBACK: Final = "TALLY_TRACEBACK"
PYTHON: Final = "TALLY_PYTHON"
BROKER_FOLDER: Final = "TALLY_BROKER_FOLDER"
LINEAGE_KEY: Final = "OPENLINEAGE_API_KEY"
S3_ENDPOINT: Final = "AWS_ENDPOINT_URL"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable: its name, its meaning, and the behaviour if it is not set."""

    name: str
    meaning: str
    default: str


VARIABLES: Final = (
    Variable(REGISTRY, "the schema registry: a manifest, or the folder with it", "registry.json"),
    Variable(MODE, "the compatibility mode of `tally schema compat`", "babelqueue"),
    Variable(BROKER, "the broker of `outbox relay` and `envelope`: a name or a URL", "none"),
    Variable(LAKE, "the folder with the tables of `tally pipeline`", "none"),
    Variable(STORE, "the store of `tally outbox`, as a URL", "none"),
    Variable(OFFICIAL, "a folder with official test files, for more witnesses", "none"),
    Variable(REDIS_URL, "the Redis for the cases of `public/redis_layout`",
             "the one that `tally broker up redis` started"),
    Variable(TRACEBACK, "any value: an internal fault shows its traceback", "not set"),
    Variable(PYTHON, "a Python that has Tallystick, for the GitHub action and for shipped scripts",
             "the checkout, or the environment around the package"),
    Variable("TALLY_SOURCE", "GitHub action, GitLab template: what pip installs, with extras",
             "the checkout of the action; GitLab needs it"),
    Variable("TALLY_PICTURES", "tests: keep the pictures of the browser tests in this folder",
             "a temporary folder"),
    Variable(BROKER_FOLDER, "set by Tallystick on the brokers that it starts, to find them again",
             "set by us"),
    Variable("TALLY_OWNER", "set by Tallystick on its programs: they end with the process that"
             " started them", "set by us"),
    Variable("NO_COLOR", "any value: no colour", "not set"),
    Variable("FORCE_COLOR", "any value except 0: use colour also without a terminal", "not set"),
    Variable("CLICOLOR_FORCE", "any value except 0: use colour also without a terminal", "not set"),
    Variable("TERM", "`dumb`: no colour", "set by the terminal"),
    Variable("CC", "the C compiler that builds the extra `artemis`", "cc"),
    Variable("RUSTUP_HOME", "the toolchains of rustup, for the Rust client",
             "the folder `.rustup` beside that of cargo"),
    Variable("JAVA_HOME", "the Java for brokers, Spark and the Java clients",
             "the `java` on the PATH"),
    Variable("JAVA_TOOL_OPTIONS", "options of every Java; its collector wins over ours", "not set"),
    Variable("JDK_JAVA_OPTIONS", "options of every Java; its collector wins over ours", "not set"),
    Variable("_JAVA_OPTIONS", "options of every Java; its collector wins over ours", "not set"),
    Variable("SPARK_HOME", "a Spark of your own for `tally pipeline`", "the one of `pyspark`"),
    Variable("SPARK_LOCAL_IP", "the address of a local Spark", "127.0.0.1"),
    Variable("PYSPARK_PYTHON", "the Python of Spark's workers", "the one that runs `tally`"),
    Variable("PYSPARK_DRIVER_PYTHON", "the Python of Spark's driver", "the one that runs `tally`"),
    Variable(S3_ENDPOINT, "the S3 server of `tally pipeline export`, as a URL", "Amazon S3"),
    Variable("AWS_ALLOW_HTTP", "`true`: the S3 server may be without TLS",
             "`true` if AWS_ENDPOINT_URL begins with `http:`"),
    Variable(LINEAGE_KEY, "the key of the OpenLineage server of `tally pipeline run --lineage`",
             "no key is sent"),
    Variable("XDG_CACHE_HOME", "the folder for downloads and builds", "~/.cache"),
    Variable("XDG_STATE_HOME", "the folder for the state and data of brokers", "~/.local/state"),
    Variable("GITHUB_WORKSPACE", "set by GitHub: annotations name files from this folder",
             "the working directory"),
    Variable("GITHUB_STEP_SUMMARY", "set by GitHub: the file for the job summary", "no summary"),
)  # fmt: skip
"""All of them: our own first, then those of other tools that we respect."""
