"""What the docs say of the code is what the code says."""

from __future__ import annotations

import re

from sealpipe.config import TEST_VARIABLES, list_known_variables
from unit.docs.generator import api, backends, contract, errors, examples, exit_codes, inputs
from unit.docs.generator.commands import METAVARS
from unit.docs.generator.exits import OWN, list_exit_codes
from unit.docs.generator.inspection import constants
from unit.docs.generator.markdown import COMMAND, cell, code, escape, fill_parts, find_parts, wrap
from unit.docs.generator.tree import leaves, root
from unit.docs.pages import PARTS, ROOT, find_stale, read_pages


def test_no_generated_page_is_stale() -> None:
    assert find_stale(read_pages()) == [], f"run {COMMAND}"


def test_a_changed_page_and_one_of_a_command_that_is_gone_are_stale() -> None:
    texts = read_pages()
    texts["reference/settings.md"] = texts["reference/settings.md"].replace(
        "SEALPIPE_PURGE_CONFIRM", "SEALPIPE_SURE"
    )
    texts["reference/commands/share.md"] += "More.\n"
    texts["reference/commands/former.md"] = "# sealpipe former\n"
    names = ["commands/former.md", "commands/share.md", "settings.md"]
    assert find_stale(texts) == [f"reference/{name}" for name in names]


def test_every_generated_part_is_on_a_page() -> None:
    found = [name for text in read_pages().values() for name in find_parts(text)]
    assert sorted(found) == sorted(PARTS)


def test_commands_have_the_exit_codes_that_the_scenarios_end_with() -> None:
    nodes = {node.name: node for node in leaves()}
    seen = {
        (name, code)
        for name, code in examples.observed()
        if name in nodes and name not in PASSING_ON
    }
    assert len(seen) > 100
    assert {
        (name, code) for name, code in seen if code not in list_exit_codes(nodes[name])
    } == set()


PASSING_ON = {"sealpipe rehearse", "sealpipe run"}
"""Commands that end with the exit code of another one."""


def test_no_table_of_the_generator_names_what_is_gone() -> None:
    names = {node.name.removeprefix("sealpipe ") for node in leaves()}
    assert OWN.keys() == names
    assert examples.SHOWN.keys() <= names
    used = {option.setting.metavar for node in root().walk() for option in node.options}
    assert METAVARS.keys() <= used


def test_everything_public_has_a_docstring() -> None:
    described = [
        *api.client(),
        *api.described_results(),
        *api.described_arguments(),
        *contract.hooks(),
    ]
    described += [*contract.described_exports(), *contract.contracts(), *contract.rehearsal()]
    described += [each for module in api.modules() for each in api.of_module(module)]
    named = [part for each in described for part in (each, *each.methods)]
    assert len(named) > 250
    assert [each.name for each in named if not each.doc] == []
    properties = [
        (each.name, part) for each in described for part in each.attributes if part.is_property
    ]
    assert [f"{name}.{part.name}" for name, part in properties if not part.doc] == []
    values = [*contract.values(), *(each for module in api.modules() for each in constants(module))]
    assert [each.name for each in values if not each.doc] == []
    assert [kind.__name__ for kind in errors.kinds() if not kind.__doc__] == []


def test_what_signatures_name_is_on_the_page() -> None:
    page = read_pages()["reference/api/client.md"]
    shown = " ".join(
        [
            *re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE),
            *ATTRIBUTE.findall(page),
        ]
    )
    headings = {
        *re.findall(r"^#+ (\w+)$", page, re.MULTILINE),
        *re.findall(r"^- `(\w+) = ", page, re.MULTILINE),
    }
    assert set(re.findall(r"\b[A-Z]\w*[a-z]\w*\b", shown)) - headings - ELSEWHERE == set()


ATTRIBUTE = re.compile(r"^- `([^`]*)`", re.MULTILINE)
ELSEWHERE = {
    *(
        "Any",
        "Callable",
        "False",
        "Iterable",
        "Iterator",
        "Literal",
        "Mapping",
        "None",
        "Path",
        "Self",
        "Sequence",
    ),
    *("True", "SealpipeError"),
    "KeyPair",  # on the page of the wire format
    # Of methods for the command line, of its messages, and of its own format.
    *("EntryCommands", "Item", "KnownLink", "Session"),
}


def test_every_attribute_of_an_exception_is_explained() -> None:
    for kind in errors.kinds():
        names = [each.name for each in errors.carried(kind) if each.name != "default_remedy"]
        assert [name for name in names if f"`{name}`" not in (kind.__doc__ or "")] == [], kind


def test_the_exit_codes_are_those_of_the_exceptions() -> None:
    assert exit_codes.of_exceptions() <= exit_codes.numbers()
    assert exit_codes.numbers() == {*range(19), 130, 143}
    used = {number for codes in OWN.values() for number in codes}
    assert used <= exit_codes.numbers()


def test_text_keeps_its_meaning_as_markdown() -> None:
    assert escape("a <b> *c* [d](e) _f_ g_h `<i>` --j-k {l}") == (
        r"a \<b> \*c\* \[d](e) \_f\_ g_h `<i>` `--j-k` `{l}`"
    )
    assert code("a `b` c") == "`` a `b` c ``"
    assert cell("`a|b`\nc") == r"`a\|b` c"
    assert wrap(f"{'x' * 119} - y") == f"{'x' * 119}\n\\- y"


def test_what_is_written_by_hand_stays() -> None:
    page = (
        f"# A\n\n<!-- generated by `{COMMAND}`: b -->\nold\n<!-- end of what is generated -->\n"
        "\nC\n"
    )
    assert fill_parts(page, {"b": lambda: "new"}) == page.replace("\nold\n", "\n\nnew\n\n")


def test_every_input_is_explained() -> None:
    rows = [row for name in inputs.TEMPLATES for row in inputs.load_template(name).inputs]
    rows += inputs.arguments((ROOT / "containers/Dockerfile").read_text(encoding="utf-8"))
    assert len(rows) > 80
    assert [row.name for row in rows if not row.about] == []


def test_every_setting_of_a_plugin_is_explained_on_the_page_of_its_product() -> None:
    texts = read_pages()
    ci = texts["reference/ci-systems.md"] + texts["how-to/ci/gitlab.md"]
    for backend in backends.backends():
        is_ci = {kind for kind, _ in backend.plugins} == {"ci"}
        text = ci if is_ci else texts[f"products/{backend.page}.md"]
        names = backend.settings.model_fields if backend.settings else ()
        assert [
            name for name in names if not re.search(rf"\b{name}\b|__{name.upper()}\b", text)
        ] == [], backend.name


def test_every_variable_is_on_the_page_of_settings() -> None:
    page = read_pages()["reference/settings.md"]
    assert [
        name for name in sorted(list_known_variables() - TEST_VARIABLES) if f"`{name}`" not in page
    ] == []
