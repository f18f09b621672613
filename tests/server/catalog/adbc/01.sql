SELECT version();
