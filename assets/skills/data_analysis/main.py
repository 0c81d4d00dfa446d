"""Loads a CSV file and returns what an agent needs to answer a question about it."""

import pandas as pd


def run(path: str, question: str, max_rows: int = 100_000) -> dict:
    table = pd.read_csv(path, nrows=max_rows)
    return {
        "question": question,
        "rows": len(table),
        "columns": {name: str(kind) for name, kind in table.dtypes.items()},
        "summary": table.describe(include="all").to_dict(),
        "sample": table.head(20).to_dict(orient="records"),
    }
