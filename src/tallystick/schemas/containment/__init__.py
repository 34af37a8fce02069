"""Decide whether every document of one schema is a document of another, with proof either way.

`old` is contained in `new` when nothing satisfies `old` and violates `new`. So one question is
asked: what inhabits `old and not new`? A value found is the witness of a break. A search that
ended without one is the proof of containment. A search cut short says so, and nothing else.

    schema pair -> nodes      subschemas, interned by structure          (nodes)
                -> expand     a conjunction of schemas, for one JSON type,
                              becomes a union of plain constraints       (expand, keywords)
                -> inhabit    values of each union member, or none       (inhabit)
                              by numbers, strings, arrays, objects
                -> strings    patterns as regular languages              (regex, language)

Recursion is sound because a smallest witness never holds itself: a question met again inside its
own answer is answered "nothing", and that answer is kept only when it did not depend on it.
"""
