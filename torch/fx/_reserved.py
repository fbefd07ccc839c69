"""Words that no value of a graph may be called: keywords, builtins, and the names that generated
code finds without an import of its own. `BUILTINS` says how a saved module imports the latter."""

import builtins
import keyword
import math
from typing import Any, NamedTuple


class _CustomBuiltin(NamedTuple):
    """A name of every generated module: the line that imports it, and the object."""

    import_str: str
    obj: Any


BUILTINS: dict[str, _CustomBuiltin] = {}
WORDS: dict[str, Any] = {name: getattr(builtins, name) for name in dir(builtins)}
WORDS.update(dict.fromkeys(keyword.kwlist, keyword))


def register(name: str, import_str: str, obj: Any) -> None:
    """Makes a name known to all generated code."""
    BUILTINS[name] = _CustomBuiltin(import_str, obj)
    WORDS[name] = obj


register("inf", "from math import inf", math.inf)
register("nan", "from math import nan", math.nan)
register("NoneType", "NoneType = type(None)", type(None))
