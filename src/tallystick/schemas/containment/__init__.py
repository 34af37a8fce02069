"""Decide whether every document of one schema is a document of another, with proof either way.

`old` is contained in `new` if no document satisfies `old` and violates `new`. So the search looks
for a document of `old and not new`. If it finds one, that document is the witness of a break. If it
ends without one, containment is proved. If it is cut short, the result is unknown.

    schema pair -> nodes      subschemas, interned by structure          (nodes)
                -> expand     a conjunction of schemas, for one JSON type,
                              becomes a union of plain constraints       (expand, keywords)
                -> inhabit    values of each union member, or none       (inhabit)
                              by numbers, strings, arrays, objects
                -> strings    patterns as regular languages              (regex, language)

Recursion is sound because a smallest witness never contains itself. If a query appears again inside
its own search, its result there is "no document". An answer that depends on such an assumption is
not kept.
"""
