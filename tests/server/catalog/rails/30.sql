SELECT extname FROM pg_extension;
