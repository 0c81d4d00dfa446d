"""Figures of one column of a CSV file, in all and by group, with nothing but the standard library."""

import csv
import itertools
import statistics
from collections import defaultdict


def run(path, column, group_by=None, max_rows=100_000):
    groups, skipped = defaultdict(list), 0
    with open(path, newline="", encoding="utf-8-sig") as file:
        for row in itertools.islice(csv.DictReader(file), max_rows):
            try:
                groups[row[group_by] if group_by else "all"].append(float(row[column]))
            except (TypeError, ValueError):
                skipped += 1
    values = list(itertools.chain.from_iterable(groups.values()))
    return {
        "all": _figures(values),
        "groups": {name: _figures(members) for name, members in sorted(groups.items())} if group_by else {},
        "skipped": skipped,
    }


def _figures(values):
    if not values:
        return {"count": 0}
    return {
        "count": len(values),
        "sum": sum(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }
