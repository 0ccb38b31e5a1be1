"""The pages of a server, and its description of requests; none of them loads anything else."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import imcc
from imcc._utils.wrappers import first_with
from imcc.estimators.thresholds import decision_thresholds
from imcc.inspection import model_page
from imcc.persistence._card import ModelCard
from imcc.tables._predict import table_model
from imcc.tables._schema import Column
from imcc.tables._steps import Category

# What the values of a column may be in JSON; as in a file, numbers may be texts.
_TYPES = {
    "number": ["number", "string", "null"],
    "yes/no": ["boolean", "number", "string", "null"],
    "date": ["string", "null"],
    "category": ["string", "number", "boolean", "null"],
    "text": ["string", "null"],
    "id": ["string", "number", "null"],
}
# Values of a category that a form suggests; a list of more is no help.
_MOST_VALUES = 200


def template(name: str) -> str:
    """Return the text of a file of the pages."""
    return (files("imcc.serve") / "templates" / name).read_text(encoding="utf-8")


def _page(title: str, body: str) -> str:
    return Template(template("page.html")).substitute(title=escape(title), body=body)


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def form_page(model: Any, card: ModelCard) -> str:
    """Return the page with a form to try a row."""
    inner = table_model(model)
    if inner is None:
        example = json.dumps([0.0] * len(card.feature_names) or "some words")
        fields = (
            '<label for="row">A row, as JSON: a list of numbers, or an object of names and '
            f'values</label><textarea id="row" rows="6">{escape(example)}</textarea>'
        )
    else:
        known = _known_values(inner)
        features = [inner.schema_[name] for name in inner.schema_.features]
        fields = "".join(_field(j, column, known) for j, column in enumerate(features))
    body = (
        f'<form id="form">{fields}<button>Predict</button></form>'
        '<p id="problem" role="alert"></p><div id="answer" aria-live="polite"></div>'
        '<script src="form.js"></script>'
    )
    return _page("Try a row", body)


def _known_values(inner: Any) -> dict[str, list[str]]:
    """Return the frequent values of each category: those of few rows are nobody's business."""
    return {
        step.column: step.frequent
        for step in inner.estimator_["table"].steps_
        if isinstance(step, Category)
    }


def _field(j: int, column: Column, known: dict[str, list[str]]) -> str:
    """Return the label and the input of a column."""
    name = escape(column.name)
    attributes = f'id="field{j}" data-column="{name}" data-kind="{column.kind}"'
    label = f'<label for="field{j}">{name} <small>{column.kind}</small></label>'
    if column.kind == "text":
        return f'{label}<textarea {attributes} rows="3"></textarea>'
    hint = ""
    if column.kind in ("number", "date") and column.examples:
        hint = f' placeholder="for example {escape(column.examples[0])}"'
    values = list(column.words or ("no", "yes")) if column.kind == "yes/no" else []
    values = known.get(column.name, values)[:_MOST_VALUES]
    options = "".join(f'<option value="{escape(value)}"></option>' for value in values)
    suggested = f'<datalist id="values{j}">{options}</datalist>' if options else ""
    chosen = f' list="values{j}"' if options else ""
    return f"{label}<input {attributes}{hint}{chosen}>{suggested}"


def about_model(model: Any, card: ModelCard) -> str:
    """Return the page about the model.

    It is that of :func:`imcc.inspection.model_page` if the model keeps held-out probabilities, and
    otherwise shows its card, the kinds of its columns, and the thresholds of its labels.  Values of
    training rows, which the card has as examples, are not for those who may ask the model.
    """
    if first_with(model, "held_out_proba_") is not None:
        return model_page(model, label_names=card.label_names, title="The model")
    labels = decision_thresholds(model, len(card.label_names)).round(3).tolist()
    about = {**card.to_dict(), "thresholds": dict(zip(card.label_names, labels, strict=True))}
    del about["columns"]
    if (inner := table_model(model)) is not None:
        about["columns"] = [
            {"name": column.name, "kind": column.kind, "becomes": column.becomes}
            for column in inner.schema_
        ]
    return _page("The model", _json(about))


def _row_schema(model: Any, card: ModelCard, ignore_extra: bool) -> dict[str, Any]:
    """Return the JSON schema of a row."""
    inner = table_model(model)
    if inner is not None:
        columns = [column for column in inner.schema_ if column.kind in _TYPES]
        return {
            "type": "object",
            "properties": {
                column.name: {"type": _TYPES[column.kind], "description": column.kind}
                for column in columns
            },
            "required": inner.schema_.features,
            "additionalProperties": ignore_extra,
        }
    n = len(card.feature_names)
    numbers = {"type": "array", "items": {"type": ["number", "null"]}}
    indices = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": n - 1}}
    return {
        "oneOf": [
            {**numbers, "minItems": n, "maxItems": n, "description": "the values of all features"},
            {
                "type": "object",
                "properties": {"indices": indices, "values": numbers},
                "required": ["indices", "values"],
                "description": "the features that are not 0, by their places from 0 on",
            },
            {"type": "object", "description": "values by the names of the features"},
            {"type": "string", "description": "text, for a model that was fitted to text"},
        ]
    }


def openapi(model: Any, card: ModelCard, max_rows: int, ignore_extra: bool) -> dict[str, Any]:
    """Return the description of the requests by OpenAPI 3.1."""
    found = json.loads(template("openapi.json"))
    found["info"] = {"title": card.model, "version": imcc.__version__}
    schemas = found["components"]["schemas"]
    schemas["Row"] = _row_schema(model, card, ignore_extra)
    schemas["Rows"]["maxItems"] = max_rows
    schemas["Prediction"]["properties"]["labels"]["items"]["enum"] = list(card.label_names)
    return found


def docs_page(described: dict[str, Any], limits: str) -> str:
    """Return the page about requests, with their description by OpenAPI."""
    body = (
        f"<p>A request may have {escape(limits)}. Its body is one row or a list, as JSON:</p>"
        "<pre>curl -H 'content-type: application/json' -d @rows.json http://ADDRESS/predict</pre>"
        '<p>For programs, by OpenAPI 3.1: <a href="openapi.json">openapi.json</a></p>'
        f"{_json(described)}"
    )
    return _page("Requests", body)
