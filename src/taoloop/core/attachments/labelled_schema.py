"""How types of results have images and files in them, for pydantic: a label stands in the place of each."""

from __future__ import annotations

from typing import Any, ClassVar


class LabelledSchema:
    """What images and files tell pydantic of themselves. A class says in `schema_label` what its label is of."""

    __slots__ = ()

    schema_label: ClassVar[str]
    """What a text of a result with it calls it, such as "an image"."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        """Lets types of results have objects of this class in them."""
        from pydantic_core import core_schema  # noqa: PLC0415  # loaded where types are described

        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, handler: Any) -> dict[str, Any]:
        """The label as JSON Schema. As an argument it has none: models write neither images nor files."""
        if handler.mode == "validation":
            from pydantic.errors import PydanticInvalidForJsonSchema  # noqa: PLC0415  # as above

            raise PydanticInvalidForJsonSchema(f"a model can give no {cls.__name__}; take a path, or the name of one")
        return {"type": "string", "description": cls.schema_label}
