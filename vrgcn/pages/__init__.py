"""Results for people: web pages, pictures, tables and progress on a terminal."""
