"""Compare: measurements as a table, a row per sub-label and a column per description."""

from __future__ import annotations

import collections
import enum

from torch.utils.benchmark.utils import common

__all__ = ["Colorize", "Compare"]

# Codes of the terminal: from the fastest time to the slowest, and the end of a colour.
BOLD, TERMINATE = "\033[1m", "\033[0m"
BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"


class Colorize(enum.Enum):
    """What a colour compares a time with: nothing, its column or its row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements; print() shows it."""

    def __init__(self, results) -> None:
        self._trim = self._highlight = False
        self._colorize, self._results = Colorize.NONE, []
        self.extend_results(results)

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results) -> None:
        """Adds measurements."""
        kinds = {type(result) for result in results}
        for kind in kinds:
            if not issubclass(kind, common.Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {kind} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise=False) -> None:
        """Shows the best times in colour, by column or by row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks times that are not to be relied on."""
        self._highlight = True

    def print(self) -> None:
        """Prints the table."""
        print(str(self))

    def _render(self) -> list[str]:
        groups = collections.defaultdict(list)
        for result in common.Measurement.merge(self._results):
            groups[result.task_spec.label].append(result)
        return ["\n".join(self._table(group)) + "\n" for group in groups.values()]

    def _table(self, results) -> list[str]:
        unit, scale = common.select_unit(min(r.median for r in results))
        columns = common.ordered_unique(r.task_spec.description for r in results)
        rows = common.ordered_unique(
            (r.task_spec.num_threads, r.task_spec.env, r.as_row_name) for r in results
        )
        rows.sort(key=lambda row: row[0])
        cells = {
            (r.task_spec.num_threads, r.task_spec.env, r.as_row_name, r.task_spec.description): r
            for r in results
        }
        texts = {key: self._text(r, scale) for key, r in cells.items()}
        envs = {row[1] for row in rows}
        names = [_row_name(row, len(envs) > 1) for row in rows]
        first = max(len("      " + name) for name in names) + 2
        widths = []
        for column in columns:
            found = [len(t) for key, t in texts.items() if key[3] == column]
            widths.append(max([len(str(column or "")), *found]))
        titles = (f"{column or '':^{width}}" for column, width in zip(columns, widths, strict=True))
        lines = [" " * first + "|  " + "  |  ".join(titles)]
        length = len(lines[0])
        title = f" {results[0].task_spec.label} " if results[0].task_spec.label else ""
        lines.insert(0, "[" + title.center(length - 2, "-") + "]")
        shown = None
        for row, name in zip(rows, names, strict=True):
            if row[0] != shown:
                shown = row[0]
                lines.append(f"{shown} threads: ".ljust(length, "-"))
            parts = []
            for column, width in zip(columns, widths, strict=True):
                text = texts.get((*row, column), "")
                colour = self._colour(cells, row, column)
                pad = " " * (width - len(text))
                parts.append(f"{pad}{colour}{text}{TERMINATE * colour.count(chr(27))}")
            lines.append(f"      {name}".ljust(first) + "|  " + "  |  ".join(parts))
        lines.append("")
        lines.append(f"Times are in {common.unit_to_english(unit)}s ({unit}).")
        if self._highlight and any(r.has_warnings for r in results):
            lines.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return lines

    def _text(self, result, scale) -> str:
        value = result.median / scale
        if self._trim:
            value = common.trim_sigfig(value, result.significant_figures)
            text = f"{value:.{max(0, result.significant_figures - len(str(int(value))))}f}"
        else:
            text = f"{value:.1f}"
        if self._highlight and result.has_warnings:
            text = f"(! {result.iqr / result.median * 100:.0f}%) {text}"
        return text

    def _colour(self, cells, row, column):
        result = cells.get((*row, column))
        if self._colorize is Colorize.NONE or result is None:
            return ""
        same = 3 if self._colorize is Colorize.COLUMNWISE else slice(0, 3)
        key = (*row, column)
        others = [r.median for k, r in cells.items() if k[same] == key[same] and k[0] == row[0]]
        best = min(others)
        if result.median <= best * 1.05:
            return BEST + BOLD
        if result.median <= best * 1.15:
            return GOOD
        return "" if result.median <= best * 1.5 else BAD if result.median <= best * 3 else VERY_BAD


def _row_name(row, with_env) -> str:
    return f"({row[1]})  {row[2]}" if with_env and row[1] is not None else row[2]
