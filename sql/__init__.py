"""From SQL text to typed, bound relations: parsing, name and type resolution, the function table, ad-hoc queries."""
