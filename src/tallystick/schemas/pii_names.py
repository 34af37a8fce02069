"""Recognize personal data by the name of a field, in English and Turkish, word by word.

A name is cut into words (`TCKimlikNo`, `e_mail`, `dogum-tarihi`), Turkish letters folded to ASCII.
A phrase counts where its words stand side by side. A word that nobody knows is cut where it falls
into words that are known, all of it (`useremail`, `telefonno`, `phonecount`). A word that turns the
meaning (`email_verified`, `ip_address_hash`, `adres_sayisi`) clears the name, and so does a last
`id` that is no part of the phrase: `address_id` names a row, not a place.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["Kind", "name_kind", "words_of"]


class Kind(NamedTuple):
    """A kind of personal data, and the JSON types in which it can come."""

    category: str
    types: frozenset[str]


_TEXT: Final = frozenset({"string"})
_DIGITS: Final = frozenset({"string", "integer", "number"})

_PHRASES: Final = {
    ("email", _TEXT): "email; e mail; mail; eposta; e posta",
    ("phone", _DIGITS): """phone; telephone; phone number; msisdn; fax; mobile number; mobile no;
        contact number; contact no; tel no; whatsapp; telefon; telefonu; cep no; cep numarasi;
        cep tel; gsm no; gsm numarasi""",
    ("name", _TEXT): """first name; last name; full name; given name; family name; middle name;
        maiden name; legal name; surname; forename; card holder; cardholder; nickname; nick name;
        kart sahibi; soyad; soyadi; soyisim; ad soyad; adi soyadi; isim soyisim; tam ad; tam adi;
        takma ad; takma adi; kizlik soyadi""",
    ("username", _TEXT): "username; user name; login name; kullanici ad; kullanici adi",
    ("password", _TEXT): """password; passwd; pwd; passphrase; passcode; pin code; sifre; sifresi;
        parola; parolasi""",
    ("gender", _DIGITS): "gender; cinsiyet; cinsiyeti",
    ("origin", _TEXT): "nationality; ethnicity; religion; uyruk; uyrugu; medeni hal; medeni hali",
    ("national_id", _DIGITS): """ssn; social security; national id; national identity;
        identity number; identity no; tckn; tc no; tc kimlik; kimlik no; kimlik numarasi""",
    ("passport", _DIGITS): "passport; pasaport",
    ("tax_id", _DIGITS): """tax id; tax number; tax no; vergi no; vergi numarasi; vergi kimlik;
        vkn""",
    ("bank_account", _DIGITS): """iban; bank account; account number; account no; hesap no;
        hesap numarasi""",
    ("card", _DIGITS): """credit card; debit card; card number; card no; cvv; cvv2; cvc; cvc2;
        kredi karti; kart no; kart numarasi""",
    ("address", _TEXT): """address; street; postcode; postal code; zip code; zipcode; adres; adresi;
        sokak; mahalle; posta kodu""",
    ("birth", _DIGITS): """birth; birthday; birthdate; dob; date of birth; dogum; dogum tarihi;
        dogum gunu""",
    ("ip_address", _TEXT): "ip address; ip adresi",
    ("mac_address", _TEXT): "mac address; mac adresi",
    ("plate", _TEXT): "license plate; licence plate; plaka",
}

_WHOLE: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "mobile": ("phone", _DIGITS), "tel": ("phone", _DIGITS), "gsm": ("phone", _DIGITS),
    "cep": ("phone", _DIGITS), "isim": ("name", _TEXT), "ad": ("name", _TEXT),
    "adi": ("name", _TEXT), "pan": ("card", _DIGITS), "ip": ("ip_address", _TEXT),
    "zip": ("address", _DIGITS), "nin": ("national_id", _DIGITS), "tin": ("tax_id", _DIGITS),
}  # fmt: skip
"""Words too short to mean anything unless they are the whole name."""

_HARMLESS: Final = frozenset(
    word
    for line in """
    hash hashed digest sha256 md5 verified verification verify confirmed confirmation validated
    valid invalid count counter total type types kind status enabled disabled allowed required
    optin opt consent subscribed unsubscribed subscription template subject sent delivered
    bounced opened clicked queue provider domain server host service campaign format length size
    limit rate version flag present exists missing changed updated created deleted masked
    encrypted token tokenized app method channel preference preferences notification
    notifications mac memory contract wallet bind listen url uri label index idx is has can
    should box policy reset strength expired expires expiry available taken
    sayisi sayi adet tipi tur turu durum durumu onay onayi onayli onaylandi dogrulandi dogrulama
    dogrulanmis izin izni sablon sablonu tercihi var ozeti
    """.splitlines()
    for word in line.split()
)
_PEOPLE: Final = frozenset(
    word
    for line in """
    user customer person contact employee patient recipient sender member passenger guest buyer
    seller author applicant student teacher driver holder subscriber beneficiary payer payee
    mother father spouse parent child
    musteri kullanici kisi calisan hasta alici gonderen uye yolcu ogrenci sahip anne baba
    """.splitlines()
    for word in line.split()
)
_BESIDE: Final = frozenset(
    word
    for line in """
    home work mobile cell office business private personal primary secondary billing shipping
    delivery invoice emergency alternate backup recovery new old my date place line code tarihi yeri
    kodu satiri ev is cep fatura teslimat yeni eski birinci ikinci
    """.splitlines()
    for word in line.split()
)
"""Words that say which one it is, or which part, and nothing about its kind."""
_NOT_TURNED: Final = frozenset({
    ("mac", "address"), ("mac", "adresi"), ("is", "telefon"), ("is", "telefonu"), ("is", "adresi"),
    ("is", "adres"), ("is", "tel"), ("is", "eposta"),
})  # fmt: skip
"""Where a word that turns the meaning elsewhere does not: a device, and Turkish for work."""
_FOLD: Final = str.maketrans("ıİşŞğĞüÜöÖçÇ", "iisSgGuUoOcC")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+")


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """Cut a name into lower-case words; a plural is its singular."""
    words = (word.lower() for word in _WORD.findall(name.translate(_FOLD)))
    return tuple(part for word in words if not word.isdecimal() for part in _parts(word))


def _parts(word: str) -> tuple[str, ...]:
    """Give the known words that a run of letters is made of, the fewest; else the run itself."""
    single = _singular(word)
    run = word.rstrip("0123456789")
    if single in _KNOWN or len(run) > _LONGEST:
        return (single,)
    best: list[tuple[str, ...] | None] = [(), *[None] * len(run)]
    for end in range(1, len(run) + 1):
        for start in range(end):
            head, part = best[start], _singular(run[start:end])
            if head is None or part not in _KNOWN:
                continue
            best[end] = min(best[end] or (*head, part), (*head, part), key=len)
    return best[-1] or (single,)


def _singular(word: str) -> str:
    for ending in ("lar", "ler"):
        if word.endswith(ending) and word[:-3] in _SINGLE:
            return word[:-3]
    stem = word[:-2] if word.endswith("sses") else word[:-1]
    if word.endswith("s") and (stem in _SINGLE or stem in _PEOPLE):
        return stem
    return word.rstrip("0123456789") if word.rstrip("0123456789") in _SINGLE else word


def _build() -> dict[str, list[tuple[tuple[str, ...], str, frozenset[str]]]]:
    """Index the phrases by their first word; each also as one word."""
    table: dict[str, list[tuple[tuple[str, ...], str, frozenset[str]]]] = {}
    for (category, types), text in _PHRASES.items():
        for phrase in text.split(";"):
            words = tuple(phrase.split())
            for form in {words, ("".join(words),)}:
                table.setdefault(form[0], []).append((form, category, types))
    return table


_TABLE: Final = _build()
_SINGLE: Final = frozenset(_TABLE) | {"address", "name", "number", "plate"}
_KNOWN: Final = (
    frozenset(word for rows in _TABLE.values() for form, _, _ in rows for word in form)
    | _HARMLESS | _PEOPLE | _BESIDE | frozenset(_WHOLE) | {"name"}
)  # fmt: skip
_LONGEST: Final = 64


@lru_cache(maxsize=16384)
def name_kind(name: str, parent: str = "") -> Kind | None:
    """Tell what kind of personal data a name promises, or None; a person's bare `name` counts."""
    words = words_of(name)
    turned = any(
        word in _HARMLESS and words[at : at + 2] not in _NOT_TURNED for at, word in enumerate(words)
    )
    if not words or turned or (words[-1] == "at" and len(words) > 1):
        return None
    whole = name.translate(_FOLD).lower()
    if whole in _WHOLE:
        return Kind(*_WHOLE[whole])
    for start, word in enumerate(words):
        for form, category, types in _TABLE.get(word, ()):
            end = start + len(form)
            if words[start:end] == form and not (words[-1] == "id" and end < len(words)):
                return Kind(category, types)
    if words in (("name",), ("ad",), ("isim",)) and not _PEOPLE.isdisjoint(words_of(parent)):
        return Kind("name", _TEXT)
    if len(words) == 2 and words[1] in ("name", "ad", "adi") and words[0] in _PEOPLE:
        return Kind("name", _TEXT)
    return None
