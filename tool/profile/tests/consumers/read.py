"""Reads a file by a Python library, and prints what that has understood as JSON.

read.py csv|graph|openmetrics|prometheus|svg FILE
read.py schema SCHEMA FILE
"""

import csv
import json
import sys
from xml.etree import ElementTree


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def read_metrics(path, parse):
    with open(path, newline="", encoding="utf-8") as file:
        families = list(parse(file.read()))
    return [
        {
            "name": family.name,
            "type": family.type,
            "unit": family.unit,
            "samples": [
                {"name": sample.name, "labels": sample.labels, "value": sample.value} for sample in family.samples
            ],
        }
        for family in families
    ]


def read_openmetrics(path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    return read_metrics(path, text_string_to_metric_families)


def read_prometheus(path):
    from prometheus_client.parser import text_string_to_metric_families

    return read_metrics(path, text_string_to_metric_families)


def read_svg(path):
    svg = "{http://www.w3.org/2000/svg}"
    start, width = "{http://github.com/jonhoo/inferno}x", "{http://github.com/jonhoo/inferno}w"
    root = ElementTree.parse(path).getroot()
    frames = []
    for group in root.iter(svg + "g"):
        rect, title = group.find(svg + "rect"), group.find(svg + "title")
        if rect is not None and title is not None:
            frames.append(
                {
                    "title": title.text,
                    "start": int(rect.get(start)),
                    "width": int(rect.get(width)),
                    "y": float(rect.get("y")),
                }
            )
    return {"frames": frames, "texts": [text.text for text in root.iter(svg + "text")]}


def read_graph(path):
    svg = "{http://www.w3.org/2000/svg}"
    root = ElementTree.parse(path).getroot()
    boxes = [group.find(svg + "title").text for group in root.iter(svg + "g")]
    return {"boxes": boxes, "calls": [path.find(svg + "title").text for path in root.findall(svg + "path")]}


def validate(schema_path, path):
    import jsonschema

    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    jsonschema.validators.validator_for(schema).check_schema(schema)
    jsonschema.validate(document, schema)
    return "valid"


READERS = {"csv": read_csv, "graph": read_graph, "openmetrics": read_openmetrics, "prometheus": read_prometheus, "svg": read_svg}

if sys.argv[1] == "schema":
    result = validate(*sys.argv[2:])
else:
    result = READERS[sys.argv[1]](*sys.argv[2:])
json.dump(result, sys.stdout)
