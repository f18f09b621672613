select current_schema();
