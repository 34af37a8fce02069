"""The rules that a SARIF log can name: what each one finds, and what to do about a finding.

A rule is `family/name`. Where the name is a keyword of JSON Schema or the name of a schema change,
there are too many for a table: the text of the family holds for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FAMILIES", "RULES", "describe_rule"]


@dataclass(frozen=True, slots=True)
class RuleText:
    """What a rule finds, in one sentence, and what to do about it."""

    finds: str
    help: str


FAMILIES: Final = {
    "check": RuleText("The schema registry has a fault.",
                      "Correct the file at the given place. `tally schema check` repeats it."),
    "validate": RuleText("A message does not match the schema of its URN.",
                         "Correct the message, or register another shape under a new URN."),
    "compat": RuleText("A schema change breaks a consumer or a producer.",
                       "Take the change back, or register the new shape under a new URN."),
    "gdpr": RuleText("Personal data is not marked.",
                     'Add "x-gdpr-sensitive": true to the field, or a waiver with a reason.'),
    "drift": RuleText("A vendored copy of the conformance suite is not the current one.",
                      "Run `tally standard sync` in the project and commit the result."),
    "run": RuleText("The command could not do its work.",
                    "Correct the file or the option that the message names, and run it again."),
}  # fmt: skip
"""First part of a rule's id -> the text for all rules of that family."""

RULES: Final = {
    "check/urn.form": RuleText("A URN is malformed.", "Write it as urn:babel:<domain>:<name>."),
    "check/urn.collision": RuleText("Two URNs give the same derived name.",
                                    "Rename one of them: queues and topics would collide."),
    "check/schema.missing": RuleText("The file of a schema does not exist.",
                                     "Add the file, or correct its path in the manifest."),
    "check/schema.json": RuleText("A schema is not valid JSON.", "Correct the syntax."),
    "check/schema.meta": RuleText("A schema breaks the rules of its JSON Schema dialect.",
                                  "Correct the keyword at the given place."),
    "check/schema.ref": RuleText("A `$ref` leads nowhere.",
                                 "Correct the reference, or add its target."),
    "check/schema.circular": RuleText("A `$ref` leads back to itself without a value between.",
                                      "Break the circle."),
    "check/schema.compile": RuleText("A schema cannot be compiled.",
                                     "Correct the keyword that the message names."),
    "check/schema.mixed": RuleText("Schemas of several dialects refer to each other.",
                                   "Use one dialect in all of them."),
    "check/schema.empty": RuleText("No document can satisfy a schema.",
                                   "Remove the keywords that contradict each other."),
    "check/schema.intricate": RuleText("A schema is too intricate to be judged in time.",
                                       "Divide it, or make it simpler."),
    "check/schema.keyword": RuleText("A keyword looks like a misspelling of a known one.",
                                     "Correct the spelling; an unknown keyword is ignored."),
    "check/schema.mark": RuleText("A mark for personal data has a value that marks nothing.",
                                  "Write true, false, or the name of a category."),
    "check/example.missing": RuleText("An example in the manifest does not exist.",
                                      "Add the file, or correct its path."),
    "check/ids.missing": RuleText("`ids.lock` lacks a URN.",
                                  "Run `tally schema serve --write-ids-lock` and commit it."),
    "check/ids.lock": RuleText("`ids.lock` cannot be read.", "Take the last good version."),
    "check/ids.unknown": RuleText("`ids.lock` names a URN that is not registered.",
                                  "Do nothing if the URN was removed: its id stays taken."),
    "check/registry.path": RuleText("A path leads out of the registry.",
                                    "Move the file into the folder of the manifest."),
    "validate/unknown": RuleText("No schema is registered for the URN of a message.",
                                 "Register the URN, or pass `--unknown warn`."),
    "validate/json": RuleText("A message is not valid JSON.", "Correct the syntax."),
    "validate/urn": RuleText("A message names no URN.", "Add `job` or `urn`, or pass `--urn`."),
    "compat/unknown": RuleText("A change could be neither proven safe nor shown to break.",
                               "Read the reason; `--allow-unknown` accepts it."),
    "compat/unread": RuleText("An old version of the registry cannot be read.",
                              "Read the reason; `--allow-unknown` accepts it."),
    "gdpr/waiver-expired": RuleText("A waiver has ended.",
                                    "Mark the field, or give the waiver a new end and reason."),
    "gdpr/waiver-unused": RuleText("A waiver clears nothing.", "Remove it."),
}  # fmt: skip
"""Id of a rule -> its own text."""


def describe_rule(rule: str) -> dict[str, Any]:
    """Give the reporting descriptor of a rule."""
    text = RULES.get(rule) or FAMILIES[rule.partition("/")[0]]
    return {
        "id": rule,
        "shortDescription": {"text": text.finds},
        "help": {"text": text.help},
    }
