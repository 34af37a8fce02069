"""The XML format, single and batch, and its safe parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Refused, Rejected
from tallystick.events.event import Event, make
from tallystick.events.extensions import SAMPLES
from tallystick.events.formats.xml_format import read, read_batch, write, write_batch
from tallystick.events.golden import EVENTS
from tallystick.events.payload import Xml
from tests.events.strategies import events, xml_texts

CE = "http://cloudevents.io/xmlformat/V1"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
CORE = "<id>minimal</id><source>https://cloudevents.io</source><type>io.cloudevents.test</type>"


def document(more: str = "", core: str = CORE, version: str = ' specversion="1.0"') -> bytes:
    return f'<event xmlns="{CE}" xmlns:xsi="{XSI}"{version}>{core}{more}</event>'.encode()


def writable(event: Event) -> bool:
    return not any(name[0].isdigit() for name in event.extensions)


@given(events(xml_texts).filter(writable))
def test_any_event_reads_back_from_xml_without_declarations(event: Event) -> None:
    assert read(write(event)) == event


@given(st.lists(events(xml_texts).filter(writable), max_size=3))
def test_any_batch_reads_back_from_xml(batch: list[Event]) -> None:
    assert list(read_batch(write_batch(batch))) == batch


def test_the_default_namespace_and_any_prefix_are_understood() -> None:
    assert read(document()) == EVENTS["minimal"]
    prefixed = (
        document().replace(b"<", b"<x:").replace(b"<x:/", b"</x:").replace(b"xmlns=", b"xmlns:x=")
    )
    assert read(prefixed) == EVENTS["minimal"]


@pytest.mark.parametrize(
    "more",
    [
        "text", "<id>1</id>", "<specversion>1.0</specversion>", "<x>1</x>",
        '<x xsi:type="ce:integer">1.5</x>', '<x xsi:type="ce:integer"> 1</x>',
        '<x xsi:type="ce:boolean">1</x>', '<x xsi:type="ce:binary">x</x>',
        '<x xsi:type="xs:string">1</x>', '<x xsi:type="xs:int">1</x>', '<x xsi:type="ce:a">1</x>',
        '<x xsi:type="other:string">1</x>', '<x xmlns:ce="urn:o" xsi:type="ce:string">1</x>',
        '<x xsi:type="ce:string">a<b/></x>', '<x xsi:type="ce:string">a\nb</x>',
        '<x xsi:type="ce:uri">//a</x>', '<x xsi:type="ce:timestamp">today</x>',
        '<X xsi:type="ce:string">a</X>', '<a-b xsi:type="ce:string">a</a-b>',
        '<subject xsi:type="ce:uri">a:b</subject>', '<subject xsi:type="xs:string">a</subject>',
        "<subject><b/></subject>", "<subject/>", "<time>2018-04-05T18:31Z</time>",
        '<time xsi:type="ce:string">2018-04-05T18:31:00Z</time>', "<dataschema>#a</dataschema>",
        "<data>x</data>", '<data xsi:type="xs:int">1</data>', '<data xsi:type="ce:string">x</data>',
        '<data xsi:type="string">x</data>', '<data xsi:type="xs:string">x<y/></data>',
        '<data xsi:type="xs:base64Binary">AAA</data>', '<data xsi:type="xs:any"/>',
        '<data xsi:type="xs:any">x<y/></data>', '<data xsi:type="xs:any"><y/><y/></data>',
        '<data xsi:type="xs:any">x</data>', '<data xsi:type="xs:string"/><data xsi:type="xs:any"/>',
        '<extinteger xsi:type="ce:string">5</extinteger>', "<undeclared:x/>", "&undefined;",
        '<datacontenttype>application/json</datacontenttype><data xsi:type="xs:string">{</data>',
    ],
)  # fmt: skip
def test_a_broken_rule_is_rejected_with_an_offset(more: str) -> None:
    with pytest.raises(Rejected) as rejected:
        read(document(more), SAMPLES)
    assert rejected.value.offset is not None


@pytest.mark.parametrize(
    "version",
    ["", ' specversion=""', ' specversion="0.3"', f' xmlns:a="{CE}" a:specversion="1.0"'],
)
def test_the_version_is_an_attribute_without_a_namespace(version: str) -> None:
    with pytest.raises(Rejected):
        read(document(version=version))


@pytest.mark.parametrize(
    "more",
    ["<!-- a -->", "<?a b?>", '<x xmlns="urn:o">text<id/></x>', '<x xmlns="">text</x>', " \n\t",
     "<![CDATA[ ]]>"],
)  # fmt: skip
def test_comments_and_foreign_elements_are_ignored(more: str) -> None:
    assert read(document(more)) == EVENTS["minimal"]


def test_text_may_be_cut_by_comments_and_cdata() -> None:
    core = CORE.replace("minimal", "mi<!-- x -->ni<![CDATA[mal]]>")
    assert read(document(core=core)) == EVENTS["minimal"]


def test_white_space_counts_in_attributes_and_not_in_base64_data() -> None:
    event = read(
        document('<subject> a </subject><data xsi:type="xs:base64Binary">\n AQ ID </data>')
    )
    assert event.subject == " a "
    assert event.data == b"\x01\x02\x03"


def test_a_declared_prefix_of_the_schema_namespace_is_understood() -> None:
    schema = 'xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
    assert read(document(f'<data {schema} xsi:type="xsd:string">a</data>')).data == "a"


@pytest.mark.parametrize(
    "element",
    ["<a/>", "<a>b<!-- c --><![CDATA[<d>]]>&amp;</a>", '<a xmlns="urn:b"><c/></a>',
     '<x:a xmlns:x="urn:b" y="1 &lt; 2"/>', "<a>\n  <b/>\n</a>"],
)  # fmt: skip
def test_an_element_as_data_is_kept_byte_for_byte(element: str) -> None:
    body = f'<c:event xmlns:c="{CE}" xmlns:xsi="{XSI}" specversion="1.0">'
    core = CORE.replace("<", "<c:").replace("<c:/", "</c:")
    event = read(f'{body}{core}<c:data xsi:type="xs:any"> {element} </c:data></c:event>'.encode())
    assert event.data == element
    assert type(event.data) is Xml
    assert f">{element}<" in write(event).decode()
    assert read(write(event)) == event


def test_an_element_takes_the_declarations_it_needs_along() -> None:
    body = document('<data xsi:type="xs:any"><g:a><b xsi:nil="true"/></g:a></data>')
    event = read(body.replace(b"<event ", b'<event xmlns:g="urn:&amp;g" '))
    assert event.data == (
        f'<g:a xmlns:g="urn:&amp;g" xmlns="{CE}" xmlns:xsi="{XSI}"><b xsi:nil="true"/></g:a>'
    )
    assert read(write(event)) == event


def test_xml_data_that_is_no_single_element_is_written_as_text() -> None:
    for text in ("<?xml version='1.0'?><a/>", "<a/><b/>", " <a/>", "<a>", "<ce:x/>", "no"):
        event = make(id="1", source="/s", type="t", datacontenttype="text/xml", data=text)
        assert b'"xs:string"' in write(event)
        assert read(write(event)) == event


def test_what_xml_cannot_say_is_refused() -> None:
    for data in ("\x00", "\uffff"):
        with pytest.raises(Refused):
            write(make(id="1", source="/s", type="t", datacontenttype="text/plain", data=data))
    with pytest.raises(Refused):
        write(make(id="1", source="/s", type="t", extensions={"1a": 1}))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"x", b"<event", b"\xff\xfe", b"\x00", b"<a/>", document() + b"<b/>",
        b'<!DOCTYPE event [<!ENTITY a "b">]>' + document("&a;"),
        b"<!DOCTYPE event>" + document(),
        b'<!DOCTYPE e SYSTEM "file:///etc/passwd">' + document(),
        b'<?xml version="1.0" encoding="ISO-8859-1"?>' + document(),
        b'<?xml version="1.1"?>' + document(), b"<a>" * 100_000,
        document("\xff").replace(b"\xc3\xbf", b"\xff"),
        document("&#0;"), document("<batch/>"),
        b'<!DOCTYPE a [<!ENTITY % p SYSTEM "x">%p;]>' + document(),
    ],
)  # fmt: skip
def test_hostile_documents_are_rejected(body: bytes) -> None:
    with pytest.raises(Rejected):
        read(body)


def test_a_billion_laughs_are_not_laughed() -> None:
    lines = ['<!ENTITY a0 "ha">', *(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))]
    with pytest.raises(Rejected) as rejected:
        read(f"<!DOCTYPE event [{''.join(lines)}]>".encode() + document("&a11;"))
    assert rejected.value.code == "doctype"


def test_utf_16_with_a_byte_order_mark_is_read() -> None:
    text = document("<subject>é</subject>").decode()
    assert read(text.encode("utf-16")).subject == "é"
    assert read(b"\xef\xbb\xbf" + text.encode()).subject == "é"
    assert read(f'<?xml version="1.0" encoding="utf-16"?>{text}'.encode("utf-16")).subject == "é"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_its_mark_is_rejected_not_misread(encoding: str) -> None:
    with pytest.raises(Rejected):
        read(write(EVENTS["minimal"]).decode().encode(encoding))


def declared(label: str, name: str) -> bytes:
    text = write(EVENTS["minimal"]).decode()
    body = text[text.index("?>") + 2 :] if text.startswith("<?xml") else text
    return f'<?xml version="1.0" encoding="{label}"?>{body}'.replace("minimal", name).encode()


def test_a_body_is_what_its_declaration_says() -> None:
    assert read(declared("US-ASCII", "plain")).id == "plain"
    assert read(declared("utf-16", "é").decode().encode("utf-16")).id == "é"
    for wrong in (
        declared("UTF-16", "plain"),
        declared("US-ASCII", "é"),
        declared("ISO-8859-1", "plain"),
        declared("UTF-8", "plain").decode().encode("utf-16"),
    ):
        with pytest.raises(Rejected):
            read(wrong)
