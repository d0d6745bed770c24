"""The grammar of references: where a secret comes from, and, in the same form, where a result goes.

    field-spec = [ label "=" ] ref
    ref        = name ":" [ "//" ] body [ "?" key "=" value *( "&" key "=" value ) ] [ "#" selector ]
    selector   = item *( "," item );   item = "*" / [ label "=" ] ( JSON pointer / key )

DESIGN section 4. `str()` of every value here is its canonical text, and parses to the same value again.
"""

from sealpipe.reference.model import PARAMETERS, FieldSpec, Reference, Target
from sealpipe.reference.parse import parse, parse_field, parse_target
from sealpipe.reference.selector import Everything, Item, Key, Pointer

__all__ = [
    "PARAMETERS",
    "Everything",
    "FieldSpec",
    "Item",
    "Key",
    "Pointer",
    "Reference",
    "Target",
    "parse",
    "parse_field",
    "parse_target",
]
