"""Summarises a CSV file with nothing but the standard library."""

import csv
import itertools
import statistics


def run(path, delimiter=None, max_rows=100_000):
    with open(path, newline="", encoding="utf-8-sig") as file:
        sample = file.read(64 * 1024)
        file.seek(0)
        dialect = csv.excel if delimiter else _guess(sample)
        rows = csv.DictReader(file, dialect=dialect, **({"delimiter": delimiter} if delimiter else {}))
        read = list(itertools.islice(rows, max_rows))
    names = rows.fieldnames or []
    return {
        "rows": len(read),
        "columns": [_column(name, [row.get(name) for row in read]) for name in names],
        "sample": read[:5],
    }


def _guess(sample):
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel


def _column(name, values):
    present = [value for value in values if value not in (None, "")]
    numbers = _numbers(present)
    column = {
        "name": name,
        "type": "number" if numbers is not None else "text",
        "missing": len(values) - len(present),
        "distinct": len(set(present)),
    }
    if numbers:
        column.update(min=min(numbers), max=max(numbers), mean=statistics.fmean(numbers))
    return column


def _numbers(values):
    try:
        return [float(value) for value in values] if values else None
    except ValueError:
        return None
