"""References lead within the document and to files beneath its folder, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tools.openapi.documents import body, document, one, only, query, read, read_operations, tool

from taoloop.errors import InvalidArguments
from taoloop.tools.openapi import OpenapiSource, openapi_tools


def folder(root: Path, files: dict[str, Any]) -> str:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content) if not isinstance(content, str) else content)
    return str(root / "main.json")


def main(ref: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(one(body({"$ref": ref}), method="post"))
    return loaded


def test_pointers_with_escapes_are_followed() -> None:
    schemas = {"a/b~c d": {"type": "object", "properties": {"x": {"type": "string"}}}}
    for ref in ("#/components/schemas/a~1b~0c%20d", "#/components/schemas/a~1b~0c d"):
        operation = only(one(body({"$ref": ref}), components={"schemas": schemas}))
        assert operation.body is not None
        assert operation.body.args == {"x": "x"}


def test_a_property_may_be_called_ref() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "beacon": {"type": "string"}}}
    made = tool(one(body(schema), method="post"))
    assert set(made.card.parameters) == {"ref", "beacon"}


def test_values_that_look_like_references_are_not_followed() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [{"$ref": "#/x"}], "default": {"$ref": "#/x"}}}}
    assert tool(one(body(schema), method="post")).card.parameters["a"]["enum"] == [{"$ref": "#/x"}]


def test_cycles_stay_references_and_judge_at_every_depth() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "inner": {"$ref": "#/components/schemas/Tree"}},
    }
    made = tool(one(body({"$ref": "#/components/schemas/Tree"}), components={"schemas": {"Tree": tree}}))
    deep = {"name": "a", "inner": {"inner": {"inner": {"name": "z"}}}}
    assert made.prepare(deep).args == deep
    with pytest.raises(Exception, match="not of type"):
        made.prepare({"inner": {"inner": {"name": ["no text"]}}})


@pytest.mark.parametrize(
    "schemas",
    [
        {"A": {"$ref": "#/components/schemas/A"}},
        {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}},
        {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}},
        {"A": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "string"}]}},
    ],
)
def test_references_that_lead_only_to_each_other_end(schemas: dict[str, Any]) -> None:
    made = tool(one({"parameters": [query("q", {"$ref": "#/components/schemas/A"})]}, components={"schemas": schemas}))
    assert made.prepare({"q": "x"}).args == {"q": "x"}


@pytest.mark.parametrize("key", ["parameters", "requestBody", "responses"])
def test_parts_that_refer_only_to_each_other_are_told(key: str) -> None:
    circle = {"$ref": f"#/components/{key}/A"}
    told: Any = {"parameters": [circle], "requestBody": circle, "responses": {"200": circle}}[key]
    _, problems = read(one({key: told}, components={key: {"A": circle}}))
    assert "form a circle" in str(problems[0])


def test_a_broken_reference_takes_anything_there_and_is_told_with_its_place() -> None:
    text = document(
        {
            "/a": {"get": {"operationId": "a", "parameters": [query("q", {"$ref": "#/components/schemas/Gone"})]}},
            "/b": {"get": {"operationId": "b", "parameters": [{"$ref": "#/components/parameters/Gone"}]}},
            "/c": {"post": {"operationId": "c", "requestBody": {"$ref": "#/components/requestBodies/Gone"}}},
            "/d": {"get": {"operationId": "d"}},
        },
        components={"schemas": {"Gonne": {}}},
    )
    loaded = openapi_tools(OpenapiSource(document=text, cache=False))
    assert [made.name for made in loaded.tools] == ["a", "b", "d"]
    told = {problem.place: problem.message for problem in loaded.problems}
    assert "'Gonne'" in told["paths./a.get"]
    assert "leads nowhere" in told["paths./b.get.parameters[0]"]
    assert told["paths./c.post"].startswith("It is omitted.")


def test_siblings_count_in_3_1_and_not_before() -> None:
    schema = {"$ref": "#/components/schemas/A", "minLength": 3, "description": "here"}
    more: Any = {"components": {"schemas": {"A": {"type": "string"}}}}
    new = only(one({"parameters": [query("q", schema)]}, **more)).parameters[0].schema
    old = only(one({"parameters": [query("q", schema)]}, **more).replace("3.1.0", "3.0.3")).parameters[0].schema
    assert (new["minLength"], new["description"]) == (3, "here")
    assert "minLength" not in old
    assert old["description"] == "here"


def test_files_beneath_the_folder_are_read(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        {
            "main.json": main("schemas/thing.yaml#/Thing"),
            "schemas/thing.yaml": "Thing: {properties: {part: {$ref: 'part.yaml'}, up: {$ref: '../main.json#/info'}}}",
            "schemas/part.yaml": "type: object\nproperties: {id: {type: integer}}\n",
        },
    )
    operations, problems = read_operations(OpenapiSource(document=path, cache=False))
    assert not problems
    assert operations[0].body is not None
    assert operations[0].body.schema["$defs"]["part"]["properties"] == {"id": {"type": "integer"}}


def test_a_path_may_stand_in_another_file(tmp_path: Path) -> None:
    item = {"get": {"operationId": "from_file", "parameters": [{"$ref": "#/p"}]}, "p": query("q")}
    path = folder(tmp_path, {"main.json": json.loads(document({"/a": {"$ref": "item.json"}})), "item.json": item})
    operations, problems = read_operations(OpenapiSource(document=path, cache=False))
    assert not problems
    assert [one.arg for one in operations[0].parameters] == ["q"]


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ("../secret.json#/a", "leaves the folder of the document"),
        ("a/../../secret.json", "leaves the folder of the document"),
        ("%2e%2e/secret.json", "leaves the folder of the document"),
        ("link.json", "cannot be read"),
        ("missing.json", "cannot be read"),
        ("main.json/x", "cannot be read"),
        ("https://elsewhere.example.com/a.json", "another address"),
        ("//elsewhere.example.com/a.json", "another address"),
        ("broken.yaml", "broken.yaml"),
    ],
)
def test_nothing_else_is_read(tmp_path: Path, ref: str, told: str) -> None:
    inside = tmp_path / "inside"
    path = folder(inside, {"main.json": main(ref), "broken.yaml": "a: b: c"})
    (tmp_path / "secret.json").write_text('{"a": {"type": "object", "properties": {"leak": {}}}}')
    (inside / "link.json").symlink_to(tmp_path / "secret.json")
    operations, problems = read_operations(OpenapiSource(document=path, cache=False))
    assert told in str(problems[0])
    assert "leak" not in str(operations)


def test_a_text_has_no_files() -> None:
    assert "the document itself is not a file" in str(read(json.dumps(main("other.json")))[1][0])


def test_a_bare_name_means_a_definition() -> None:
    operation = only(one(body({"$ref": "Thing"}), components={"schemas": {"Thing": {"properties": {"a": {}}}}}))
    assert operation.body is not None
    assert operation.body.args == {"a": "a"}


def test_definitions_inside_a_schema_are_found_by_their_own_pointer() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}
    operation = only(one(body(schema)))
    assert operation.body is not None
    assert operation.body.schema["$defs"]["A"] == {"type": "integer"}


def test_a_schema_that_refers_to_itself_in_the_ways_of_2019_and_2020() -> None:
    for word in ("$recursiveRef", "$dynamicRef"):
        filters = {
            "type": "object",
            "properties": {"and": {"type": "array", "items": {word: "#"}}},
            "additionalProperties": False,
        }
        made = tool(one(body({"$ref": "#/components/schemas/F"}), components={"schemas": {"F": filters}}))
        assert made.prepare({"and": [{"and": []}]}).args
        with pytest.raises(Exception, match="other"):
            made.prepare({"and": [{"other": 1}]})


def test_an_own_id_does_not_move_the_references() -> None:
    root = json.loads(
        one(body({"$ref": "#/components/schemas/A"}), components={"schemas": {"A": {"properties": {"a": {}}}}})
    )
    text = json.dumps(
        {"$schema": "https://unknown.example.com/x", "$id": "https://else.example.com/y", "$self": "z", **root}
    )
    assert only(text).body is not None


def test_names_of_schemas_are_found_and_the_order_of_fields_is_kept() -> None:
    schemas = {"A": {"$anchor": "thing", "properties": {"z": {}, "a": {}}}, "B": {"properties": {"z": {}, "a": {}}}}
    for ref in ("#thing", "#/components/schemas/B"):
        operation = only(one(body({"$ref": ref}), components={"schemas": schemas}))
        assert operation.body is not None
        assert set(operation.body.args) == {"a", "z"}
    assert list(operation.body.args if operation.body else ()) == ["z", "a"]


def parameter_names(text: str, **settings: Any) -> list[list[str]]:
    operations, problems = read(text, **settings)
    assert not problems, problems
    return [[parameter.name for parameter in operation.parameters] for operation in operations]


def test_an_operation_that_is_a_reference_has_the_parameters_of_its_target() -> None:
    listing = {"operationId": "list", "parameters": [query("limit")], "requestBody": body({"type": "string"})}
    paths = {
        "/pets": {"get": listing},
        "/cats": {"get": {"$ref": "#/paths/~1pets/get", "operationId": "list_cats"}},
        "/dogs": {"$ref": "#/paths/~1pets", "parameters": [query("breed")]},
    }
    operations, _ = read(document(paths))
    assert [[p.name for p in operation.parameters] for operation in operations] == [
        ["limit"],
        ["limit"],
        ["breed", "limit"],
    ]
    assert [operation.operation_id for operation in operations] == ["list", "list_cats", "list"]


def test_operations_in_other_files_resolve_what_they_name_from_there(tmp_path: Path) -> None:
    pets = {
        "get": {"operationId": "list", "parameters": [{"$ref": "../parts.json#/parameters/limit"}]},
        "post": {"operationId": "add", **body({"$ref": "#/Pet"})},
        "Pet": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "owner": {"$ref": "../parts.json#/Owner"}},
        },
    }
    owner = {"type": "object", "properties": {"pets": {"type": "array", "items": {"$ref": "paths/pets.json#/Pet"}}}}
    parts = {"parameters": {"limit": query("limit"), "page": query("page")}, "Owner": owner}
    paths = {
        "/pets": {"$ref": "paths/pets.json", "parameters": [{"$ref": "parts.json#/parameters/page"}]},
        "/animals": {"get": {"$ref": "./paths/pets.json#/get", "operationId": "animals"}},
    }
    files = {"main.json": document(paths), "paths/pets.json": pets, "parts.json": parts}
    operations, problems = read_operations(OpenapiSource(document=folder(tmp_path, files), cache=False))
    assert not problems
    assert {operation.operation_id: [p.name for p in operation.parameters] for operation in operations} == {
        "list": ["page", "limit"],
        "add": ["page"],
        "animals": ["limit"],
    }
    made = {tool.name: tool for tool in openapi_tools(OpenapiSource(document=str(tmp_path / "main.json"))).tools}
    made["add"].prepare({"name": "Tom", "owner": {"pets": [{"owner": {"pets": [{"name": "Kit"}]}}]}})
    with pytest.raises(InvalidArguments, match="not of type"):
        made["add"].prepare({"owner": {"pets": [{"owner": {"pets": [{"name": 5}]}}]}})


def test_an_operation_that_refers_to_itself_or_nowhere_is_reported() -> None:
    paths = {"/a": {"get": {"$ref": "#/paths/~1a/get"}, "put": {"$ref": "#/paths/~1b/put"}, "post": None}, "/c": None}
    operations, problems = read(document(paths))
    assert not operations
    assert [problem.place for problem in problems] == ["paths./a.get", "paths./a.put", "paths./a.post", "paths"]
    assert "circle" in problems[0].message
    assert "leads nowhere" in problems[1].message
