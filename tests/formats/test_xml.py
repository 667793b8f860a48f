"""XML that could do harm is refused, and wrong XML is told with file and line."""

import pytest

import linkwright as lw
from linkwright.errors import FormatError
from linkwright.formats import xml
from linkwright.formats.urdf import read_urdf
from linkwright.formats.xml import parse_xml


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "m.urdf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


LAUGHS = '<!DOCTYPE robot [<!ENTITY l0 "ha">{}]><robot name="&l9;"><link name="&l9;"/></robot>'.format(
    "".join(f'<!ENTITY l{k + 1} "{f"&l{k};" * 10}">' for k in range(9))
)


def test_a_billion_laughs_are_refused_before_they_expand(file):
    with pytest.raises(FormatError, match="declares the entity 'l0'"):
        read_urdf(file(LAUGHS))


def test_a_billion_laughs_in_utf_16_are_refused_too(file):
    with pytest.raises(FormatError, match="declares the entity 'l0'"):
        parse_xml(file(('<?xml version="1.0" encoding="UTF-16"?>' + LAUGHS).encode("utf-16")))


def test_an_external_entity_is_refused_and_its_file_not_read(file, tmp_path):
    (tmp_path / "secret").write_text("secret")
    text = f'<!DOCTYPE r [\n<!ENTITY e SYSTEM "file://{tmp_path}/secret">]><r>&e;</r>'
    with pytest.raises(FormatError, match="declares the entity 'e'") as caught:
        parse_xml(file(text))
    assert caught.value.line == 2


def test_a_parameter_entity_is_refused(file):
    with pytest.raises(FormatError, match="declares the entity 'p'"):
        parse_xml(file('<!DOCTYPE r [<!ENTITY % p SYSTEM "http://localhost/x.dtd"> %p;]><r/>'))


def test_an_outside_document_type_is_refused(file):
    with pytest.raises(FormatError, match=r"outside document type \(http://localhost/x.dtd\)"):
        parse_xml(file('<!DOCTYPE r SYSTEM "http://localhost/x.dtd"><r/>'))


def test_a_plain_document_type_is_harmless(file):
    assert parse_xml(file("<!DOCTYPE r><r/>")).tag == "r"


@pytest.mark.parametrize(
    "declaration",
    [
        '<?xml version="0.0"?>',
        "<?xml version='0.0' encoding='utf-8' ?>",
        '\n \t\n<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
        '\ufeff  <?xml version="1.0"?>',
        '\n<?xml\nversion="0.0"?>',
    ],
)
def test_a_declaration_of_no_version_or_after_white_space_is_read(file, declaration):
    path = file(declaration + "\n<robot name='ü'>\n<link name='a'/></robot>")
    root = parse_xml(path)
    assert (root.tag, root.get("name"), xml.root_tag(path)) == ("robot", "ü", "robot")
    assert root[0].sourceline == declaration.count("\n") + 3


def test_the_encoding_of_such_a_declaration_counts(file):
    text = "\n<?xml version='0.0' encoding='iso-8859-1'?><robot name='ü'/>"
    assert parse_xml(file(text.encode("latin-1"))).get("name") == "ü"


def test_malformed_xml_is_told_with_file_and_line(file):
    path = file("<robot>\n<link>\n</robot>")
    with pytest.raises(FormatError, match=rf"{path}:3: is not well-formed XML: mismatched tag"):
        parse_xml(path)


@pytest.mark.parametrize("text", ["not xml", b"\xff\xfe\x00", b"<r>\x80</r>"])
def test_what_is_not_xml_at_all_is_a_format_error(file, text):
    with pytest.raises(FormatError, match="not well-formed"):
        parse_xml(file(text))


def test_a_very_deep_tree_is_refused(file):
    with pytest.raises(FormatError, match="nested more than 500 deep"):
        parse_xml(file("<a>" * 10_000 + "</a>" * 10_000))


def test_a_very_large_file_is_refused(file, monkeypatch):
    monkeypatch.setattr(xml, "MAX_BYTES", 2**20)
    with pytest.raises(FormatError, match="is larger than 1 MB"):
        parse_xml(file("<r>" + " " * 2**20 + "</r>"))


def test_prefixes_that_nobody_declared_are_harmless(file):
    root = parse_xml(file('<robot><xacro:property name="x"/><link name="a"/></robot>'))
    assert [link.get("name") for link in root.iterchildren("link")] == ["a"]


def test_a_missing_file_is_a_format_error(tmp_path):
    with pytest.raises(FormatError, match=r"nothing\.urdf: cannot be read: No such file"):
        parse_xml(tmp_path / "nothing.urdf")


def test_comments_and_instructions_are_no_children(file):
    assert len(parse_xml(file("<r><!-- a --><?b c?><d/></r>"))) == 1


@pytest.mark.parametrize("encoding", ["shift_jis", "x-y", "hex", "idna"])
@pytest.mark.parametrize("ending", [".urdf", ".sdf", ".xml"])
def test_a_declared_encoding_that_is_not_read_is_named(tmp_path, encoding, ending):
    path = tmp_path / f"robot{ending}"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?><robot name="r"/>')
    with pytest.raises(FormatError, match=r"declares an encoding that is not read.*save it as UTF-8"):
        lw.load(path)
