"""How other programs write a value, and the one finder of such spellings.

What is promised is what is searched: **each character of a value as it is or in any of its usual
spellings, in any mix, and escaped again up to twice, in at most 1,024 bytes; the value in hex; and
in base64 the value or its JSON form, at each alignment, in lines or not, itself spelled in any of
these ways.** The usual spellings of a character are `\\uXXXX`, `\\u{X}`, `\\UXXXXXXXX`, `\\xXX`,
`\\x{X}` and `\\n`; `%XX`; `&#N;` and `&#xN;` with at most eight leading zeros, and `&name;`; a sign
after backslashes; a quote doubled, or closed and opened again as shells do it; a byte in octal
after a backslash; a line break as CR LF; a blank as `+`, or as a line break with its indent; and
UTF-16.

Not found are: a quote that is doubled and then escaped twice; an escape whose own digits or braces
are escaped; and a value of less than 12 bytes whose first ones make an escape with what is before
them, such as a backslash or a `%`, if others are spelled, too.

A value has at least four characters, and is searched as a whole and line by line, or only as a
whole if it is no text in any encoding; what is longer than 64 bytes, piece by piece. Else common
text would count as a find, and much of a stream would have to wait for its next bytes.
"""

from sealpipe.spellings.finder import REACH, Finder, Span, merge_spans, replace_spans
from sealpipe.spellings.needles import is_searchable

__all__ = ["REACH", "Finder", "Span", "is_searchable", "merge_spans", "replace_spans"]
