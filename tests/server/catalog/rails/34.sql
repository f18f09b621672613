SELECT current_schema;
