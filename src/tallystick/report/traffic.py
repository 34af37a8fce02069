"""Write the page of a lake: the results of the pipeline on one HTML page that opens from disk.

It turns the digest of a lake (plain values, `tallystick.pipeline.digest`) into the page. The most
important figures come first; each chart has its figures as text beside it. A part without rows says
why it is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tallystick.report.flow_map import Flow, draw_map, join_flows
from tallystick.report.markup import Markup, join, tag
from tallystick.report.sheet import code, details, figure, names, nothing, table, way
from tallystick.report.shell import fill
from tallystick.report.traffic_plots import (
    ACCEPTANCE,
    bar,
    draw_acceptance,
    draw_axis,
    draw_latency,
    latency_span,
    legend,
    stack,
)
from tallystick.report.units import count, duration, moment, octets, share

__all__ = ["build_traffic_page"]

FAULTS: Final = ("lost", "duplicated", "unexpected", "altered", "reordered")


def build_traffic_page(digest: Mapping[str, Any]) -> str:
    """Give the page of a digest."""
    figures = digest["run"]["figures"]
    sections = [
        _section("acceptance", "Do the messages follow the contract?", _acceptance(digest)),
        _section("violations", "Refused records and violations", _violations(digest)),
        _section("deliveries", "Sent and received messages compared", _deliveries(digest)),
        _section("latency", "Delivery times", _latency(digest["latency"])),
        _section("flows", "Which message causes which", _flows(digest["flows"])),
        _section("drift", "Messages that are not canonical", _drift(digest["drift"])),
        _section("exposure", "Personal data in messages", _exposure(digest["exposure"])),
        _section("coverage", "Differences between the registry and the traffic",
                 _coverage(digest["coverage"])),
        _section("verdicts", "Verdicts of suites and the lab", _verdicts(digest)),
        _section("run", "About this run", _run(digest)),
    ]  # fmt: skip
    return fill(
        "traffic.html", "traffic.css", headline=_headline(figures), tiles=_tiles(figures),
        body=join(sections),
    )  # fmt: skip


def _section(name: str, title: str, inside: Sequence[Markup]) -> Markup:
    return tag("section", tag("h2", title, id=f"{name}-title"), *inside, id=name,
               aria_labelledby=f"{name}-title")  # fmt: skip


def _headline(figures: Mapping[str, int]) -> Markup:
    total, refused = figures["messages"], figures["refused"]
    if not total:
        return tag("p", "No message was captured: these tables are empty.", class_="warn note")
    kept = f"{share(total - refused, total)} of {count(total)} records follow the contract."
    told = [f"{count(figures[name])} {name}" for name in FAULTS if figures[name]]
    sound = " No message was lost, duplicated or altered." if figures["delivered"] else ""
    return tag("p", kept, f" Messages with faults: {', '.join(told)}." if told else sound)


_TILES: Final = (
    ("messages", "records", "acceptance", ""),
    ("refused", "refused", "violations", "bad"),
    ("delivered", "delivered", "deliveries", ""),
    ("lost", "lost", "deliveries", "bad"),
    ("duplicated", "duplicated", "deliveries", "warn"),
    ("altered", "altered", "deliveries", "bad"),
    ("exposed", "exposed fields", "exposure", "bad"),
    ("drifting", "drifting", "drift", "warn"),
    ("unregistered", "not registered", "coverage", "warn"),
)
"""The figures at the top: which, their name, where they lead, and their tone when above zero."""


def _tiles(figures: Mapping[str, int]) -> Markup:
    tiles = [
        tag("a", tag("b", count(figures[name])), tag("span", label), href=f"#{where}",
            class_=f"tile {(tone or 'calm') if figures[name] else 'calm'}", data_figure=name,
            data_value=figures[name])
        for name, label, where, tone in _TILES
    ]  # fmt: skip
    return tag("nav", *tiles, class_="tiles", aria_label="Figures")


def _acceptance(digest: Mapping[str, Any]) -> list[Markup]:
    held = digest["acceptance"]
    untimed = held["untimed"]
    if not held["buckets"] and not any(untimed.values()):
        return nothing("No record was read, so there is nothing to accept or refuse.")
    parts = [legend(ACCEPTANCE)]
    if held["buckets"]:
        rows = [
            (moment(held["start"] + at * held["width"], held["width"]), *bucket.values())
            for at, bucket in enumerate(held["buckets"])
        ]
        listed = table("Records over time", ("from, UTC", *ACCEPTANCE.values()), rows)
        ends = f"{rows[0][0]} to {rows[-1][0]} UTC, in steps of {duration(held['width'])}"
        parts += [
            draw_acceptance(held),
            tag("p", ends, class_="soft"),
            details("As a table", listed),
        ]
    if any(untimed.values()):
        told = ", ".join(f"{count(n)} {ACCEPTANCE[name]}" for name, n in untimed.items() if n)
        parts.append(tag("p", f"Records without a time, not in the chart: {told}.", class_="soft"))
    return parts


def _violations(digest: Mapping[str, Any]) -> list[Markup]:
    refusals, violations = digest["refusals"], digest["violations"]
    if not refusals["rows"]:
        return nothing("No record was refused.")
    most = refusals["rows"][0]["count"]
    stages = [
        (row["stage"], code(row["code"]), row["count"],
         bar(f"{row['stage']} {row['code']}", row["count"], most,
             "violating" if row["stage"] == "schema" else "refused"))
        for row in refusals["rows"]
    ]  # fmt: skip
    head = ("stage", "reason", "records", "compared")
    first = table("Refused records by stage and reason", head, stages, refusals["more"])
    parts = [tag("h3", "Refused records, by stage and reason"), first]
    parts.append(tag("h3", "Schema violations, by URN and keyword"))
    if not violations["rows"]:
        return parts + nothing("No message violates its schema.")
    most = violations["rows"][0]["count"]
    rules = [
        (code(row["urn"]), code(row["keyword"]), row["count"],
         bar(f"{row['urn']} {row['keyword']}", row["count"], most, "violating"))
        for row in violations["rows"]
    ]  # fmt: skip
    head = ("URN", "keyword", "violations", "compared")
    return [*parts, table("Schema violations by URN and keyword", head, rules, violations["more"])]


def _deliveries(digest: Mapping[str, Any]) -> list[Markup]:
    held = digest["deliveries"]
    if not held["rows"]:
        return nothing(
            "No capture has a direction (sent or received), so no messages can be paired."
        )
    most = max(sum(row[name] for name in FAULTS) for row in held["rows"])
    rows = []
    for row in held["rows"]:
        faults = {name: row[name] for name in FAULTS}
        ends = (
            f"{names(row['senders']) or 'no sender'} → {names(row['receivers']) or 'no receiver'}"
        )
        name = way(row["queue"], f"{ends}, {row['broker'] or 'unknown broker'}")
        none = tag("span", "none", class_="soft")
        drawn = stack(str(row["queue"]), faults, most) if any(faults.values()) else none
        rows.append((name, drawn, row["delivered"], *faults.values(), row["unobserved"]))
    head = ("queue, sender → receiver", "faults", "delivered", *FAULTS, "unobserved")
    note = "A message can have more than one fault. Unobserved: the other side was not captured."
    return [
        legend({name: name for name in FAULTS}),
        table("Deliveries by queue", head, rows, held["more"]),
        tag("p", note, class_="soft"),
    ]


def _latency(held: Mapping[str, Any]) -> list[Markup]:
    if not held["rows"]:
        return nothing("No message was seen on both sides with a time, so no latency is known.")
    span = latency_span(held["rows"])
    rows = []
    for row in held["rows"]:
        ends = f"{row['sender']} → {row['receiver']}"
        where = f"{ends}, {row['broker'] or 'unknown broker'}, {row['queue']}"
        figures = [
            figure(duration(row[one])) for one in ("p50", "p90", "p99", "maximum", "clock_error")
        ]
        name = way(row["urn"] or "(unreadable)", where)
        drawn = draw_latency(row, span, f"{row['urn']}, {ends}")
        rows.append((name, drawn, *figures, row["messages"]))
    axis = join(["percentiles", draw_axis(span)])
    head = ("URN, sender → receiver", axis, "p50", "p90", "p99", "most", "± clocks", "messages")
    note = (
        "The bar around each point is the error of the two clocks; the true value lies inside it."
    )
    return [
        legend({"p50": "p50", "p90": "p90", "p99": "p99"}),
        table("Latency by sender and receiver", head, rows, held["more"]),
        tag("p", note, class_="soft"),
    ]


def _flows(held: Mapping[str, Any]) -> list[Markup]:
    if not held["rows"]:
        return nothing("No message with a trace was sent, so no flow is known.")
    flows = join_flows(held["rows"])
    drawn = draw_map(flows)
    region = tag("div", drawn, class_="scroll", role="region", aria_label="Event-flow map")
    parts = [region] if drawn else []
    linked = {one.cause for one in flows} | {one.effect for one in flows if one.cause}
    alone = [one for one in flows if one.cause is None and one.effect not in linked]
    if alone:
        chips = [tag("li", code(one.effect), f" {count(one.messages)}") for one in alone]
        parts.append(tag("p", "Messages without a cause or an effect in these traces:",
                         class_="soft"))  # fmt: skip
        parts.append(tag("ul", *chips, class_="chips"))
    return [*parts, details("As a table", _flow_table(flows, held["more"]))]


def _flow_table(flows: Sequence[Flow], more: int) -> Markup:
    rows = [
        (code(one.effect), code(one.cause) if one.cause else "(starts a trace)",
         names(one.programs), one.messages, figure(one.rate), figure(one.delay))
        for one in flows
    ]  # fmt: skip
    head = ("effect", "cause", "sent by", "messages", "rate", "median delay")
    return table("Flows", head, rows, more)


def _drift(held: Mapping[str, Any]) -> list[Markup]:
    if not held["rows"]:
        return nothing(
            "Every accepted message is canonical, and every native field matches the message."
        )
    rows = [
        (row["kind"], code(row["place"] or "(whole message)"), code(row["urn"]), str(row["lang"]),
         str(row["node"]), str(row["broker"]), row["messages"])
        for row in held["rows"]
    ]  # fmt: skip
    head = ("kind", "place", "URN", "language", "program", "broker", "messages")
    return [table("Drift", head, rows, held["more"])]


_BASIS: Final = {
    "mark": "marked in its schema", "form": "found by its form, not marked",
    "checksum": "found by its checksum, not marked",
}  # fmt: skip


def _exposure(held: Mapping[str, Any]) -> list[Markup]:
    if not held["rows"]:
        return nothing(
            "No field is marked as personal data, and no value looks like personal data."
        )
    rows = [
        (code(row["path"]), code(row["urn"]), row["category"],
         tag("span", _BASIS[row["basis"]], class_="" if row["basis"] == "mark" else "badge bad"),
         row["messages"])
        for row in held["rows"]
    ]  # fmt: skip
    return [
        table("Exposure", ("field", "URN", "category", "found", "messages"), rows, held["more"])
    ]


def _coverage(held: Mapping[str, Any]) -> list[Markup]:
    if not held["rows"]:
        return nothing("Everything seen is registered, and everything registered was seen.")
    rows = [
        (code(row["path"] or "(the URN itself)"), code(row["urn"]),
         "registered, never seen" if row["registered"] else "seen, not registered", row["messages"])
        for row in held["rows"]
    ]  # fmt: skip
    return [table("Coverage", ("field", "URN", "state", "messages"), rows, held["more"])]


def _verdicts(digest: Mapping[str, Any]) -> list[Markup]:
    verdicts, flaky = digest["verdicts"], digest["flaky"]
    if not verdicts["rows"]:
        return nothing("The inputs had no journal.")
    rows = [
        (row["suite"], row["subject"], row["counts_as"], row["count"]) for row in verdicts["rows"]
    ]
    parts = [
        table("Verdicts", ("suite", "implementation", "outcome", "cases"), rows, verdicts["more"])
    ]
    if flaky["rows"]:
        shaky = [
            (code(row["case"]), row["subject"], row["passed"], row["failed"])
            for row in flaky["rows"]
        ]
        parts.append(tag("h3", "Cases that passed in some runs and failed in others"))
        parts.append(
            table(
                "Flaky cases", ("case", "implementation", "passed", "failed"), shaky, flaky["more"]
            )
        )
    return parts


def _run(digest: Mapping[str, Any]) -> list[Markup]:
    run = digest["run"]
    inputs = [
        (code(one["path"]), one["form"], figure(octets(one["size"])), one["rows"]["messages"],
         one["rows"]["envelopes"], one["rows"]["quarantine"], one["rows"]["verdicts"])
        for one in run["inputs"]["rows"]
    ]  # fmt: skip
    about = {
        "started": run["started"],
        "run": run["key"],
        "registry": run["registry"],
        **run["versions"],
    }
    pairs = [item for name, value in about.items() for item in (tag("dt", name), tag("dd", value))]
    head = ("input", "form", "size", "records", "accepted", "quarantined", "verdicts")
    made = table("Rows", ("table", "rows"), list(run["tables"].items()))
    taken = table("Seconds", ("step", "seconds"), list(run["seconds"].items()))
    return [
        tag("dl", *pairs),
        table("Inputs", head, inputs, run["inputs"]["more"]),
        tag("div", tag("div", tag("h3", "Rows by table"), made),
            tag("div", tag("h3", "Seconds by step"), taken), class_="beside"),
        tag("h3", "Again"),
        tag("pre", digest["command"], tabindex=0),
    ]  # fmt: skip
