from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.catalog import Catalog, parse_catalog
from tallystick.schemas.pii import audit, fields_of, inventory, read_examples
from tallystick.schemas.pii_names import name_kind, words_of
from tallystick.schemas.pii_values import is_card, is_iban, is_tckn, share_kind, value_kind
from tallystick.schemas.waivers import parse_waivers, settle

MARKED = {"type": "string", "x-gdpr-sensitive": True}
TEXT = {"type": "string"}


def catalog(schema: Any) -> Catalog:
    manifest = json.dumps({"schemas": [{"urn": "urn:babel:x:y", "schema": "a.json"}]})
    return parse_catalog(manifest, lambda _: json.dumps(schema).encode())


def suspects(schema: Any, *payloads: Any) -> list[tuple[str, str]]:
    found = audit(catalog(schema), {"urn:babel:x:y": payloads})
    return [(one.path, one.category) for one in found]


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("email", "email"), ("e_mail", "email"), ("eMail", "email"), ("emails", "email"),
        ("contactEmailAddress", "email"), ("e-posta", "email"), ("mail", "email"),
        ("phone", "phone"), ("phoneNumber", "phone"), ("telefon", "phone"), ("cep_no", "phone"),
        ("telefonlar", "phone"), ("msisdn", "phone"), ("mobile", "phone"),
        ("firstName", "name"), ("full_name", "name"), ("lastname", "name"), ("soyad\u0131", "name"),
        ("customer_name", "name"), ("ad", "name"), ("adSoyad", "name"),
        ("nationalId", "national_id"), ("national-id", "national_id"), ("ssn", "national_id"),
        ("TCKimlikNo", "national_id"), ("tckn", "national_id"), ("vergi_no", "tax_id"),
        ("passport_number", "passport"), ("iban", "bank_account"), ("IBANNumber", "bank_account"),
        ("creditCard", "card"), ("card_number", "card"), ("cvv", "card"), ("kart_no", "card"),
        ("address", "address"), ("addresses", "address"), ("address1", "address"),
        ("ev_adresi", "address"), ("dob", "birth"), ("dateOfBirth", "birth"),
        ("doğum_tarihi", "birth"), ("DOĞUM_TARİHİ", "birth"), ("ip_address", "ip_address"),
        ("mac_address", "mac_address"), ("password", "password"), ("şifre", "password"),
        ("gender", "gender"), ("cinsiyet", "gender"), ("uyruk", "origin"),
        ("iş_telefonu", "phone"), ("user_name", "username"), ("nickname", "name"),
    ],
)  # fmt: skip
def test_a_personal_name_is_known_in_english_and_turkish(name: str, category: str) -> None:
    kind = name_kind(name)
    assert kind is not None, words_of(name)
    assert kind.category == category


@pytest.mark.parametrize(
    ("category", "names"),
    [
        ("email", "useremail emailaddress contactemail userEmails eposta epostaadresi email2"),
        ("phone", "homephone mobilephone phoneno phonenumbers telefonno ceptelefonu istelefonu"),
        ("name", "firstname fullname customername adsoyad adisoyadi musteriadi annekizliksoyadi"),
        ("username", "username usernames kullaniciadi"),
        ("password", "userpassword newpassword kullanicisifresi"),
        ("address", "homeaddress shippingaddress addressline1 evadresi zipcode"),
        ("birth", "birthdate birthplace dateofbirth dogumtarihi dogumyeri"),
        ("national_id", "tckimlikno kimlikno socialsecuritynumber nationalid"),
        ("mac_address", "macaddress macadresi"), ("card", "kredikartino creditcardnumber"),
        ("bank_account", "bankaccountno ibanno"), ("ip_address", "ipaddress"),
    ],
)  # fmt: skip
def test_a_name_written_as_one_word_is_known_too(category: str, names: str) -> None:
    kinds = {name: name_kind(name) for name in names.split()}
    assert {name: kind and kind.category for name, kind in kinds.items()} == dict.fromkeys(
        kinds, category
    )


@pytest.mark.parametrize(
    "name",
    ["emailverified", "phonecount", "isemailverified", "hasphone", "phonetype", "mailserver",
     "hostname", "namespace", "classname", "streetlight", "addressable", "addressbook", "hotel",
     "telegram", "phonetic", "cardinality", "microphone", "saxophone", "agenda", "mailing",
     "password_reset", "passwordpolicy", "password_changed_at", "emailhash", "email_mac", "mac",
     "telefonsayisi", "epostaonayi", "sifredurumu", "adim", "islem", "platelet", "rebirth",
     "gendered", "postgres", "piano", "canton", "a" * 5000],
)  # fmt: skip
def test_a_word_that_holds_a_personal_one_by_chance_is_not_personal(name: str) -> None:
    assert name_kind(name) is None


@pytest.mark.parametrize(
    "name",
    ["email_verified", "mailbox_count", "ip_address_hash", "address_id", "phone_type", "isEmail",
     "emailSentAt", "mobile_app_version", "adres_sayisi", "eposta_onayi", "mailbox",
     "name", "product_name", "filename", "city", "note", "order_id", "currency", "emailTemplate",
     "ads", "card_id", "cardType", "wallet_address", "telefon_dogrulandi", "user_id", "line", ""],
)  # fmt: skip
def test_a_name_that_only_sounds_personal_is_not(name: str) -> None:
    assert name_kind(name) is None


def test_a_bare_name_is_personal_below_a_person() -> None:
    assert name_kind("name", "customers") is not None
    assert name_kind("name", "product") is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("TR330006100519786457841326", "bank_account"),
        ("TR33 0006 1005 1978 6457 8413 26", "bank_account"),
        ("TR330006100519786457841327", ""),
        ("4111111111111111", "card"), ("4111 1111 1111 1111", "card"), (4111111111111111, "card"),
        ("4111111111111112", ""), ("7111111111111115", ""),
        ("10000000146", "national_id"), (10000000146, "national_id"),
        ("12345678901", ""), ("00000000146", ""), ("١٠٠٠٠٠٠٠١٤٦", ""),
        ("a@example.com", "email"), ("not an @ mail", ""), ("+905551112233", "phone"),
        ("+90 555 111 22 33", "phone"), ("905551112233", ""), (True, ""), (None, ""), (1.5, ""),
        (10**400, ""),
    ],
)  # fmt: skip
def test_a_value_is_personal_by_its_checksum_alone(value: Any, kind: str) -> None:
    assert value_kind(value) == kind


@given(st.text(max_size=40))
def test_the_checksums_answer_for_any_text(text: str) -> None:
    assert {is_iban(text), is_card(text), is_tckn(text)} <= {True, False}


@given(st.integers(0, 10**9 - 1))
def test_a_tckn_has_exactly_one_pair_of_check_digits(stem: int) -> None:
    digits = f"{stem:09d}"
    hits = [pair for pair in range(100) if is_tckn(f"{digits}{pair:02d}")]
    assert len(hits) == (0 if digits[0] == "0" else 1)


def test_one_lucky_number_among_many_proves_nothing() -> None:
    numbers = [10000000146, *range(20000000000, 20000000040)]
    assert share_kind(numbers) == ("", 0)
    assert share_kind(["10000000146"] * 9 + ["20000000000"]) == ("national_id", 9)


def test_marks_are_found_wherever_a_schema_can_put_them() -> None:
    schema = {
        "definitions": {"person": properties(tckn={"type": "string", "x-gdpr-sensitive": "id"})},
        "properties": {
            "plain": TEXT,
            "unmarked": {"type": "string", "x-gdpr-sensitive": False},
            "empty": {"type": "string", "x-gdpr-sensitive": ""},
            "number": {"type": "string", "x-gdpr-sensitive": 3},
            "buyer": {"$ref": "#/definitions/person"},
            "both": {"allOf": [TEXT, MARKED]},
            "either": {"oneOf": [{"type": "integer"}, {"anyOf": [MARKED]}]},
            "phones": {"type": "array", "items": MARKED},
            "pair": {"items": [TEXT, MARKED]},
            "labels": {"patternProperties": {"^x-": MARKED}},
            "map": {"additionalProperties": {"properties": {"deep": MARKED}}},
            "keys": {"propertyNames": MARKED},
            "tagged": {"type": "string", "confluent:tags": ["PII"]},
        },
        "if": {"properties": {"kind": {"const": 1}}},
        "then": {"properties": {"branch": MARKED}},
    }
    assert inventory(schema) == {
        "both": "", "branch": "", "buyer.tckn": "id", "either": "", "keys{keys}": "",
        "labels.{^x-}": "", "map.*.deep": "", "pair[1]": "", "phones[]": "", "tagged": "",
    }  # fmt: skip


def test_a_mark_on_the_root_has_an_empty_path() -> None:
    assert inventory({"x-gdpr-sensitive": "all", "type": "object"}) == {"": "all"}


def test_a_recursive_schema_is_walked_to_an_end() -> None:
    schema = {
        "definitions": {f"d{at}": properties(**{
            f"p{to}": {"$ref": f"#/definitions/d{to}"} for to in range(9)
        }, email=MARKED) for at in range(9)},
        "$ref": "#/definitions/d0",
    }  # fmt: skip
    paths = inventory(schema)
    assert {"email", "p0.email", "p1.email", "p1.p2.email"} <= set(paths)
    assert sum(1 for _ in fields_of(schema)) < 10_000


def test_a_dynamic_reference_is_followed_to_every_place_it_may_mean() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"a": {"$dynamicRef": "#node"}},
        "$defs": {"x": {"$dynamicAnchor": "node", "properties": {"b": MARKED}}},
    }
    assert inventory(schema) == {"a.b": ""}


def test_a_missing_example_is_told_with_its_line(tmp_path: Path) -> None:
    row = {"urn": "urn:babel:x:y", "schema": "a.json", "examples": ["none.json"]}
    found = parse_catalog(json.dumps({"schemas": [row]}), lambda _: b"{}", root=tmp_path)
    with pytest.raises(Unavailable, match=r"registry\.json:1: none\.json"):
        read_examples(found)


def test_the_audit_sees_names_formats_and_types() -> None:
    schema = properties(
        email_verified={"type": "boolean"},
        email=TEXT,
        address={"type": "object", "properties": {"city": TEXT}},
        phones={"type": "array", "items": TEXT},
        sendTo={"type": "string", "format": "email"},
        iban={"$ref": "#/definitions/iban"},
        card={"enum": ["card_number"]},
        card_number={"enum": ["visa", "troy"]},
        birth={"type": "boolean"},
        profile={"x-gdpr-sensitive": True, "properties": {"email": TEXT}},
        alternatives={"oneOf": [{"properties": {"ssn": TEXT}}]},
        labels={"patternProperties": {"^email_": TEXT}},
        mail={"type": "integer"},
    )
    schema["definitions"] = {"iban": MARKED}
    assert suspects(schema) == [
        ("alternatives.ssn", "national_id"), ("email", "email"), ("labels.{^email_}", "email"),
        ("phones[]", "phone"), ("sendTo", "email"),
    ]  # fmt: skip


def test_the_audit_goes_by_the_values_of_examples() -> None:
    schema = properties(reference=TEXT, other=TEXT, marked=MARKED)
    schema["properties"]["listed"] = {"type": "string", "examples": ["4111111111111111"]}
    payload = {
        "reference": "TR330006100519786457841326",
        "other": "TR330006100519786457841327",
        "marked": "10000000146",
        "extra": {"deep": ["10000000146"]},
    }
    assert suspects(schema, payload) == [
        ("extra.deep[]", "national_id"), ("listed", "card"), ("reference", "bank_account"),
    ]  # fmt: skip


def test_a_pattern_takes_the_place_of_our_judgement() -> None:
    schema = properties(email=TEXT, city=TEXT, town={"type": "object"})
    found = audit(catalog(schema), {}, lambda name: name in ("city", "town"))
    assert [one.path for one in found] == ["city"]


def test_a_suspect_names_file_line_and_pointer() -> None:
    text = b'{"properties": {\n "a": {},\n "email": {"type": "string"}}}'
    manifest = '{"schemas": [{"urn": "urn:babel:x:y", "schema": "a.json"}]}'
    [found] = audit(parse_catalog(manifest, lambda _: text))
    assert (found.file, found.line, found.pointer) == ("a.json", 3, "/properties/email")


DAY = dt.date(2026, 11, 15)


def waiver(**changes: Any) -> bytes:
    row = {"urn": "u", "path": "p", "reason": "agreed", "expires": "2026-11-15", **changes}
    return json.dumps({"waivers": [row]}).encode()


def test_a_waiver_holds_through_its_last_day_and_is_then_a_finding() -> None:
    waivers = parse_waivers(waiver(), "w.json")
    assert settle(waivers, [("u", "p")], DAY).cleared == {("u", "p")}
    after = settle(waivers, [("u", "p")], DAY + dt.timedelta(days=1))
    assert (after.cleared, len(after.expired)) == (frozenset(), 1)


def test_a_waiver_without_a_use_is_told() -> None:
    assert len(settle(parse_waivers(waiver(), "w.json"), [], DAY).unused) == 1


@pytest.mark.parametrize(
    "raw",
    [b"[]", b'{"waivers": 3}', waiver(reason=" "), waiver(expires="soon"), waiver(expires=3),
     waiver(owner="me"), b'{"waivers": [{"urn": "u", "path": "p", "expires": "2026-11-15"}]}'],
)  # fmt: skip
def test_a_waiver_without_reason_or_end_is_rejected(raw: bytes) -> None:
    with pytest.raises(Rejected, match=r"w\.json:1"):
        parse_waivers(raw, "w.json")


@pytest.mark.parametrize(
    ("values", "category"),
    [([10000000146], "national_id"), ([4111111111111111, 5500005555555559], "card"),
     ([4111111111111112], None), ([10000000146.0], "national_id"), ([1.5], None)],
)  # fmt: skip
def test_a_number_with_true_check_digits_is_evidence(
    values: list[Any], category: str | None
) -> None:
    schema = properties(ref={"type": "number", "examples": values})
    found = suspects(schema)
    assert found == ([("ref", category)] if category else [])


def test_a_suspect_behind_a_reference_is_where_it_stands() -> None:
    files = {
        "a.json": {"properties": {"who": {"$ref": "b.json"}}},
        "b.json": {"properties": {"n": {"type": "integer"}, "email": {"type": "string"}}},
    }
    manifest = '{"schemas": [{"urn": "urn:a", "schema": "a.json"}]}'
    two = parse_catalog(manifest, lambda path: json.dumps(files[path], indent=1).encode())
    (found,) = audit(two)
    assert (found.file, found.line, found.pointer) == ("b.json", 6, "/properties/email")
