"""Applying a function to columns of an item, which steps of pipes share."""

from __future__ import annotations

__all__ = ["apply_to_columns", "call_on_columns"]


def _columns(data, columns) -> tuple[int, ...]:
    if isinstance(columns, (list, tuple)):
        return tuple(data[column] for column in columns)
    return (data[columns],)


def call_on_columns(function, data, input_col) -> int:
    """function(data), or of the columns named by input_col."""
    if input_col is None:
        return function(data)
    return function(*_columns(data, input_col))


def apply_to_columns(function, data, input_col, output_col):
    """The item with the result in output_col (-1: appended), by default where the first input
    was."""
    if input_col is None and output_col is None:
        return function(data)
    result = call_on_columns(function, data, input_col)
    was_tuple = isinstance(data, tuple)
    data = list(data) if was_tuple else data
    if output_col is None:
        if isinstance(input_col, (list, tuple)):
            data[input_col[0]] = result
            for column in sorted(input_col[1:], reverse=True):
                del data[column]
        else:
            data[input_col] = result
    elif output_col == -1:
        data.append(result)
    else:
        data[output_col] = result
    return tuple(data) if was_tuple else data
