"""What load_state_dict says about keys that do not fit: lists of keys, grouped where they are long
("encoder.{0..11}.{weight, bias}" instead of 24 names), and the renames that would make keys of the
file fit the model. A rename is proposed by counting: each pair of an unexpected and a missing key
that differ in one part votes for exchanging it."""

from __future__ import annotations

from collections import Counter

__all__ = ["grouped", "proposals"]

_LIST_UP_TO = 8
_GROUPS_SHOWN = 20
_RENAMES_SHOWN = 5


def _numbers(values) -> str:
    """Numbers of one place as a range or a list."""
    ordered = sorted(values)
    if len(ordered) == 1:
        return str(ordered[0])
    if ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{{{ordered[0]}..{ordered[-1]}}}"
    shown = ", ".join(map(str, ordered[:6]))
    return f"{{{shown}{', ...' if len(ordered) > 6 else ''}}}"


class _Family:
    """Keys that are the same but for numbers inside and the name at the end."""

    def __init__(self) -> None:
        self.leaves, self.numbers, self.count = {}, [], 0

    def add(self, parents, leaf) -> None:
        """Notes a key."""
        found = [int(part) for part in parents if part.isdecimal()]
        self.numbers = self.numbers or [set() for _ in found]
        for place, number in zip(self.numbers, found, strict=True):
            place.add(number)
        self.leaves[leaf] = None
        self.count += 1

    def text(self, pattern) -> str:
        """The keys as one name in quotes, with their number."""
        places = iter(self.numbers)
        parts = [_numbers(next(places)) if part is None else part for part in pattern]
        leaves = list(self.leaves)
        parts.append(leaves[0] if len(leaves) == 1 else "{" + ", ".join(leaves) + "}")
        number = f" ({self.count} keys)" if self.count > 1 else ""
        return f'"{".".join(parts)}"{number}'


def grouped(keys) -> str:
    """The keys in quotes; many of them in groups."""
    if len(keys) <= _LIST_UP_TO:
        return ", ".join(f'"{key}"' for key in keys)
    families = {}
    for key in keys:
        *parents, leaf = key.split(".")
        pattern = tuple(None if part.isdecimal() else part for part in parents)
        families.setdefault(pattern, _Family()).add(parents, leaf)
    texts = [family.text(pattern) for pattern, family in families.items()]
    more = len(texts) - _GROUPS_SHOWN
    return ", ".join(texts[:_GROUPS_SHOWN]) + (f" and {more} groups more" if more > 0 else "")


def _one_part_differs(missing) -> dict[tuple[str | None, ...], set[str]]:
    """(parts with one left out) -> the parts that stand there in missing keys."""
    known = {}
    for key in missing:
        parts = key.split(".")
        for place in range(len(parts)):
            pattern = (*parts[:place], None, *parts[place + 1 :])
            known.setdefault(pattern, set()).add(parts[place])
    return known


def _tails(missing) -> dict[tuple[str, ...], set[str]]:
    """(end of a key) -> the beginnings that missing keys have before it."""
    known = {}
    for key in missing:
        parts = key.split(".")
        for place in range(len(parts)):
            known.setdefault(tuple(parts[place:]), set()).add(".".join(parts[:place]))
    return known


def _vote(key, differing, tails) -> tuple[str, str, str] | None:
    """The one change that makes a missing key of this one, as ("part" or "head", old, new)."""
    parts = key.split(".")
    for place in range(len(parts)):
        found = differing.get((*parts[:place], None, *parts[place + 1 :]), ())
        if len(found) == 1:
            return "part", parts[place], next(iter(found))
    for place in range(len(parts)):
        found = tails.get(tuple(parts[place:]), ())
        if len(found) == 1:
            return "head", ".".join(parts[:place]), next(iter(found))
        if found:
            break
    return None


def _sentence(kind, old, new, count) -> str:
    keys = f"{count} keys" if count > 1 else "1 key"
    if kind == "part":
        return f'rename "{old}" to "{new}" ({keys})'
    if not new:
        code = f"{{k.removeprefix({old + '.'!r}): v for k, v in state_dict.items()}}"
        return f'keys of the file begin with "{old}.": remove that prefix ({keys}), e.g. {code}'
    if not old:
        return f'keys of the model begin with "{new}.": add that prefix ({keys})'
    return f'rename "{old}." at the beginning to "{new}." ({keys})'


def proposals(missing, unexpected) -> str:
    """A sentence about the renames that would resolve most mismatches, or nothing."""
    differing, tails = _one_part_differs(missing), _tails(missing)
    votes = Counter(_vote(key, differing, tails) for key in unexpected)
    votes.pop(None, None)
    texts = [_sentence(*change, count) for change, count in votes.most_common(_RENAMES_SHOWN)]
    if not texts:
        import difflib

        for key in list(unexpected)[:200]:
            close = difflib.get_close_matches(key, missing, n=1, cutoff=0.85)
            if close:
                texts.append(f'rename "{key}" to "{close[0]}"')
    return "To make them fit: " + "; ".join(texts[:_RENAMES_SHOWN]) + "." if texts else ""
