"""Dataflows for those who think in collections: a face over the same plans as SQL.

A `Collection` is an immutable value: a query that is not run. An operator makes a new one. A view is made of it with
`engine.create_view("name", collection)`, and `engine.query` and `engine.explain` take it where they take SQL.

**A collection is a text.** `collection.sql()` is one SELECT of halfjoin's SQL, and nothing else. Parser, binder,
planner and catalog see what a user could have typed. So a view keeps its text and can be opened again, and a collection
means what SQL means: types, NULLs, counts of rows, errors. What has no text, such as a Python function without a name,
is refused; a function is registered first, and called by its name.

**Arguments are SQL.** `filter("n < 3")` and `map("src", n="dst + 1")` take expressions. Each is parsed by itself, so it
is one whole expression, and is written into the text as it stands. Python values go through `hj.lit`, which quotes
them. Inside an expression `this` is the collection, and in joins `other` the other one. The names of keywords become
names of columns, quoted if need be.

**A text is shared.** An operator's input becomes a query of WITH, once, however many operators read it.

**Iteration** is WITH ITERATIVE (`halfjoin.sql.bind.iteration`): x(0) = start, x(r + 1) = body(x(r)), until nothing
changes. A body is a Python function that is called once, with a collection that stands for x. What it reads from
outside is written outside, so loops compose: one after another, one inside another.
"""
